// @vitest-environment happy-dom

import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { ForgetResponse } from "@/api/types";
import { describePlans, keepersOf, planForgetting } from "@/sessions/forgetting";
import { SessionsPage } from "@/sessions/sessions-page";
import { answerWith, renderAt } from "./render";
import { session } from "./samples";

const asked = { counts: { prompts: 1, steps: 1 } };
const BANK = session({ id: "a:1", title: "Mind the bank", ...asked });
const SHOP = session({ id: "a:2", title: "Open the shop", ...asked });
const LIST = { items: [BANK, SHOP], next_cursor: null, total: 2, change_sequence: 1 };

function plan(fields: Partial<ForgetResponse>): ForgetResponse {
  return {
    forgotten: false,
    session_ids: [],
    messages: 0,
    files: [],
    archived_bytes: 0,
    shared: {},
    ...fields,
  };
}

const GONE = plan({ session_ids: ["a:1", "a:1.sub"], messages: 7, files: ["/x"], archived_bytes: 2048 });

it("selects sessions and archives them", async () => {
  const requests = answerWith({
    "GET /api/sessions": { json: LIST },
    "PATCH /api/sessions/": { json: BANK },
  });
  renderAt("/", <SessionsPage />);
  await userEvent.click(await screen.findByRole("button", { name: "Select" }));
  expect(screen.getByRole("button", { name: "Archive" }).hasAttribute("disabled")).toBe(true);
  await userEvent.click(screen.getByRole("checkbox", { name: "Select Mind the bank" }));
  await userEvent.click(screen.getByRole("checkbox", { name: "Select Open the shop" }));
  expect(screen.getByText("2 selected")).toBeTruthy();
  await userEvent.click(screen.getByRole("button", { name: "Archive" }));
  expect(requests.lines.filter((line) => line.startsWith("PATCH"))).toEqual([
    "PATCH /api/sessions/a%3A1",
    "PATCH /api/sessions/a%3A2",
  ]);
  expect(requests.bodies).toEqual([{ archived: true }, { archived: true }]);
});

it("adds tags and keeps those that are there", async () => {
  const annotations = {
    title: null,
    starred: false,
    archived: false,
    tags: ["old"],
    note: null,
    changed_at: "",
  };
  const tagged = { ...LIST, items: [{ ...BANK, annotations }] };
  const requests = answerWith({ "GET /api/sessions": { json: tagged }, "PATCH /api/": { json: BANK } });
  renderAt("/", <SessionsPage />);
  await userEvent.click(await screen.findByRole("button", { name: "Select" }));
  await userEvent.click(screen.getByRole("checkbox"));
  await userEvent.click(screen.getByRole("button", { name: "Tag" }));
  const dialog = within(screen.getByRole("dialog"));
  await userEvent.type(dialog.getByLabelText("Tags to add"), "new, old");
  await userEvent.click(dialog.getByRole("button", { name: "Save" }));
  expect(requests.bodies).toEqual([{ tags: ["old", "new"] }]);
});

it("says what will go before it forgets", async () => {
  const requests = answerWith({
    "GET /api/sessions": { json: LIST },
    "POST /api/sessions/a%3A1/forget": { json: GONE },
  });
  renderAt("/", <SessionsPage />);
  await userEvent.click(await screen.findByRole("button", { name: "Select" }));
  await userEvent.click(screen.getByRole("checkbox", { name: "Select Mind the bank" }));
  await userEvent.click(screen.getByRole("button", { name: "Forget…" }));
  expect(await screen.findByText(/2 sessions, 7 messages, 1 archived file \(2 kB\)/)).toBeTruthy();
  expect(requests.bodies).toEqual([{ dry_run: true }]);
  await userEvent.click(screen.getByRole("button", { name: "Forget permanently" }));
  expect(requests.bodies).toEqual([{ dry_run: true }, { dry_run: false }]);
  expect(await screen.findByRole("button", { name: "Select" })).toBeTruthy();
});

it("says why nothing was forgotten", async () => {
  answerWith({
    "GET /api/sessions": { json: LIST },
    "POST /api/sessions/": { status: 403, message: "the sample is for reading only" },
  });
  renderAt("/", <SessionsPage />);
  await userEvent.click(await screen.findByRole("button", { name: "Select" }));
  await userEvent.click(screen.getByRole("checkbox", { name: "Select Mind the bank" }));
  await userEvent.click(screen.getByRole("button", { name: "Forget…" }));
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toBe("Not forgotten: the sample is for reading only");
  expect(screen.getByRole("button", { name: "Forget permanently" }).hasAttribute("disabled")).toBe(true);
});

describe("the plan for several sessions", () => {
  it("counts a subagent that is selected too with its parent only", async () => {
    answerWith({
      "POST /api/sessions/a%3A1/forget": { json: GONE },
      "POST /api/sessions/a%3A1.sub/forget": { json: plan({ session_ids: ["a:1.sub"], messages: 3 }) },
    });
    const plans = await planForgetting([session({ id: "a:1.sub" }), BANK]);
    expect([...plans.keys()]).toEqual(["a:1"]);
  });

  it("is a lower bound where two of them share messages, and names who keeps some", () => {
    const plans = new Map([
      ["a:1", plan({ session_ids: ["a:1"], messages: 2, shared: { "a:2": 4, "a:9": 1 } })],
      ["a:2", plan({ session_ids: ["a:2"], messages: 1, shared: { "a:1": 4 } })],
    ]);
    expect(describePlans(plans)).toBe("2 sessions, at least 3 messages, 0 archived files (0 B)");
    expect(keepersOf(plans)).toBe(1);
  });
});
