// @vitest-environment happy-dom

import { cleanup, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { Route } from "wouter";
import { ApiError } from "@/api/client";
import { describeFailure, Problem } from "@/design/problem";
import TeamPage from "@/hub/team-page";
import { answerWith, renderAt } from "./render";

const ME = {
  user: { id: "u-2", name: "Ben" },
  team: { id: "1", name: "" },
  role: "member",
  scopes: ["read", "push"],
};

function openTeam(address: string): void {
  answerWith({
    "GET /api/status": { json: { hub: true, sync: { state: "off" }, search: { unindexed: 0 } } },
    "GET /hub/v1/me": { json: ME },
    "GET /hub/v1/": { json: { items: [] } },
  });
  renderAt(address, <Route path="/team/:section?" component={TeamPage} />);
}

afterEach(cleanup);

it("leads from a section that there is not to the page of the team", async () => {
  openTeam("/team/nothing");
  expect(await screen.findByRole("heading", { name: "Team" })).toBeDefined();
  expect(location.pathname).toBe("/team");
});

it("leads away from a section that one may not see", async () => {
  openTeam("/team/usage");
  expect(await screen.findByText("Only owners and admins see it.")).toBeDefined();
  expect(screen.getByRole("link", { name: "To the page of the team" }).getAttribute("href")).toBe("/team");
});

it("says more of what was not found, and nothing more of another failure", () => {
  const failed = (status: number) => (
    <Problem error={new ApiError(status, "there is none")} what="This session">
      <p>forgotten, or not shown to you</p>
    </Problem>
  );
  expect(renderAt("/", failed(404)).container.textContent).toContain("not shown to you");
  expect(renderAt("/", failed(500)).container.textContent).not.toContain("not shown to you");
});

it("does not take a hub for a program of this machine", () => {
  expect(describeFailure(new TypeError("Failed to fetch"))).toMatch(
    /does not answer. If it runs on this machine/,
  );
});
