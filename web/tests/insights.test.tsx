// @vitest-environment happy-dom

import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { CommandFigures, Insights } from "@/api/types";
import InsightsPage from "@/insights/insights-page";
import { answerWith, type Requests, renderAt } from "./render";

function command(name: string, calls: number, failed: number, median_ms: number | null): CommandFigures {
  return {
    command: name,
    calls,
    failed,
    duration_ms: calls * (median_ms ?? 0),
    median_ms,
    longest_ms: median_ms,
    unknown_durations: median_ms === null ? calls : 0,
    longest_session_id: "plain:shop",
    longest_message_id: "a1",
  };
}

/** By time, as the server lists them. */
const COMMANDS = [
  command("npm test", 10, 4, 9000),
  command("git push", 30, 9, 500),
  command("ls", 80, 0, 0),
  command("tsc", 2, 1, null),
];

const REPORT = {
  ...{ zone: "UTC", granularity: "day", activity: [], undated_calls: 1, projects: [], tools: [], files: [] },
  ...{ commands: COMMANDS, commands_found: 4, files_found: 0, models: [], compactions: [], errors: [] },
  ...{ subagents: { sessions: 0, calls: 0, total_calls: 0, cost: null, total_cost: null, share: null } },
  ...{ errors_found: 0, notes: [] },
} as Insights;

let requests: Requests;

beforeEach(() => {
  requests = answerWith({ "GET /api/insights": { json: REPORT } });
});

async function openAt(address: string) {
  renderAt(address, <InsightsPage />);
  return within(await screen.findByRole("region", { name: "Slow and failing commands" }));
}

type Section = Awaited<ReturnType<typeof openAt>>;

function namesIn(section: Section) {
  return section.getAllByRole("rowheader").map((head) => head.textContent);
}

function sortedBy(section: Section) {
  const heads = section.getAllByRole("columnheader").filter((head) => head.hasAttribute("aria-sort"));
  return heads.map((head) => `${head.textContent} ${head.getAttribute("aria-sort")}`);
}

describe("the table of commands", () => {
  it("is sorted by time at first, and by the column whose head is pressed", async () => {
    const section = await openAt("/insights");
    expect(namesIn(section)).toEqual(["npm test", "git push", "ls", "tsc"]);
    expect(sortedBy(section)).toEqual(["Time descending"]);
    await userEvent.click(section.getByRole("button", { name: "Failed" }));
    expect(namesIn(section)).toEqual(["git push", "npm test", "tsc", "ls"]);
    expect(sortedBy(section)).toEqual(["Failed descending"]);
    await userEvent.click(section.getByRole("button", { name: "Failed" }));
    expect(namesIn(section)).toEqual(["ls", "tsc", "npm test", "git push"]);
    expect(sortedBy(section)).toEqual(["Failed ascending"]);
    expect(window.location.search).toBe("?sort=failed&order=ascending");
  });

  it("is sorted by the keyboard", async () => {
    const section = await openAt("/insights");
    section.getByRole("button", { name: "Calls" }).focus();
    await userEvent.keyboard("{Enter}");
    expect(namesIn(section)).toEqual(["ls", "git push", "npm test", "tsc"]);
    await userEvent.tab();
    expect(document.activeElement?.textContent).toBe("Failed");
  });

  it("has what is unknown last, in both directions of an address", async () => {
    expect(namesIn(await openAt("/insights?sort=median&order=ascending"))).toEqual([
      ...["ls", "git push", "npm test", "tsc"],
    ]);
    expect(requests.lines.filter((line) => line.includes("sort"))).toEqual([]);
  });

  it("shows a time below a millisecond and one that is unknown, neither as zero", async () => {
    const section = await openAt("/insights");
    const times = (name: string) =>
      within(section.getByRole("row", { name: new RegExp(`^${name}`) }))
        .getAllByRole("cell")
        .slice(2)
        .map((cell) => cell.textContent);
    expect(times("git push")).toEqual(["500 ms", "500 ms", "15 s"]);
    expect(times("ls")).toEqual(["< 1 ms", "< 1 ms", "< 1 ms"]);
    expect(times("tsc")).toEqual(["–", "–", "–"]);
  });

  it("says which commands it has, if these are not all", async () => {
    answerWith({ "GET /api/insights": { json: { ...REPORT, commands_found: 312 } } });
    const section = await openAt("/insights");
    expect(
      section.getByText(/Of 312, those with the most calls, failures and time are listed\.$/),
    ).toBeTruthy();
  });
});
