// @vitest-environment happy-dom

import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { SessionItem, SessionState, UsageReport, UsageTotals } from "@/api/types";
import FilesPage from "@/files/files-page";
import InsightsPage from "@/insights/insights-page";
import SearchPage from "@/search/search-page";
import { SessionFiltersBar } from "@/sessions/session-filters";
import { SessionRow } from "@/sessions/session-row";
import { SessionsPage } from "@/sessions/sessions-page";
import { StateBadge } from "@/sessions/state-badge";
import { SESSION_FILTERS, type SessionFilters } from "@/sessions/use-sessions";
import { COST } from "@/usage/measures";
import UsagePage from "@/usage/usage-page";
import { UsageTable } from "@/usage/usage-table";
import { answerWith, renderAt } from "./render";
import { session } from "./samples";

const NOW = new Date("2026-11-22T12:00:00Z");

it.each([
  ["/", "GET /api/sessions?", SessionsPage, "The list of sessions could not be loaded"],
  ["/usage", "GET /api/usage", UsagePage, "The usage could not be loaded"],
  ["/files", "GET /api/files/touched", FilesPage, "The list of files could not be loaded"],
  ["/search?q=blue", "GET /api/search", SearchPage, "The search could not be loaded"],
])("says at %s what could not be loaded, and why", async (address, request, Page, title) => {
  answerWith({ [request]: { status: 503, message: "the store is busy" } });
  renderAt(address, <Page />);
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toContain(title);
  expect(alert.textContent).toContain("The store is busy");
});

it.each([
  ["/insights", InsightsPage, "The insights"],
  ["/usage", UsagePage, "The usage"],
  ["/usage?compare=1", UsagePage, "The comparison"],
])("says at %s that it is loading, until the answer is there", async (address, Page, what) => {
  answerWith({ "GET /api/": { status: 503, message: "the store is busy" } });
  renderAt(address, <Page />);
  expect(screen.getByRole("status").textContent).toBe("Loading…");
  expect((await screen.findByRole("alert")).textContent).toContain(`${what} could not be loaded`);
  expect(screen.getByRole("status").textContent).toBe("");
});

it("compares the days before an end that is chosen alone", async () => {
  const { lines } = answerWith({ "GET /api/": { status: 503, message: "the store is busy" } });
  renderAt("/usage?compare=1&zone=UTC&until=2026-11-10", <UsagePage />);
  await screen.findByRole("alert");
  const asked = lines.find((line) => line.startsWith("GET /api/usage/comparison")) ?? "";
  const { searchParams } = new URL(asked.replace("GET ", ""), "http://localhost");
  expect([searchParams.get("since"), searchParams.get("until")]).toEqual(["2026-11-04", "2026-11-11"]);
});

it.each(["quiet", "killed"] as const)("says what a session did that is %s now", (state) => {
  const doing = { tool_name: "Bash", summary: "python bench.py --all" } as SessionState["doing"];
  const since = "2026-11-22T11:40:00Z";
  const evidence = state === "quiet" ? "silence" : "process-ended";
  const item = session({ state: { state, evidence, detail: null, since, quiet_at: null, doing } });
  renderAt("/", <StateBadge session={item} now={NOW} />);
  expect(screen.getByText(/bench/).textContent).toBe("· Bash python bench.py --all");
});

it.each([
  ["/search?q=is:bad", "GET /api/search", SearchPage, "This query cannot be used"],
  ["/?agent=nobody", "GET /api/sessions?", SessionsPage, "This choice cannot be used"],
])("says at %s that what was asked for is wrong, not the server", async (address, request, Page, title) => {
  answerWith({ [request]: { status: 422, message: "there is no such name" } });
  renderAt(address, <Page />);
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toContain(title);
  expect(alert.textContent).toContain("There is no such name");
});

it("has one field for which sessions are shown and for what they have had", async () => {
  const changes: unknown[] = [];
  const none = Object.fromEntries(SESSION_FILTERS.map((name) => [name, ""])) as SessionFilters;
  const filters = { ...none, having: "failed-call" };
  answerWith({});
  renderAt("/", <SessionFiltersBar filters={filters} onChange={(change) => changes.push(change)} />);
  const field = screen.getByRole("combobox", { name: "Show" }) as HTMLSelectElement;
  expect(field.selectedOptions[0]?.textContent).toBe("Failed calls");
  await userEvent.selectOptions(field, "Starred");
  await userEvent.selectOptions(field, "Errors");
  expect(changes).toEqual([
    { show: "starred", having: "" },
    { show: "", having: "error" },
  ]);
});

function listOf(...items: SessionItem[]) {
  return { items, next_cursor: null, total: items.length, change_sequence: 1 };
}

it("folds empty sessions into one row that opens", async () => {
  const asked = session({
    id: "a:1",
    title: "Mind the bank",
    counts: { prompts: 1 },
    first_prompt: "Mind it",
  });
  const cleared = {
    title: "/clear",
    title_source: "prompt" as const,
    counts: { messages: 2, prompts: 1 },
    first_prompt: "/clear",
  };
  const items = [asked, session({ id: "a:2", ...cleared }), session({ id: "a:3", ...cleared })];
  answerWith({ "GET /api/sessions": { json: listOf(...items) } });
  renderAt("/", <SessionsPage />);
  expect(await screen.findByText("Mind the bank")).toBeTruthy();
  expect(screen.queryByText("/clear")).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "2 empty sessions" }));
  expect(screen.getAllByText("/clear")).toHaveLength(2);
});

it("shows the last continuation with the time of day, and the session before it when opened", async () => {
  const asked = { counts: { prompts: 1 }, first_prompt: "Go" };
  const last = session({
    id: "a:2",
    title: "Second half",
    updated_at: "2026-11-20T10:05:00Z",
    relationships: [{ kind: "continuation", parent_session_id: "a:1" }],
    ...asked,
  });
  const first = session({ id: "a:1", title: "First half", updated_at: "2026-11-20T09:00:00Z", ...asked });
  answerWith({ "GET /api/sessions": { json: listOf(last, first) } });
  renderAt("/", <SessionsPage />);
  const link = (await screen.findByText("Second half")).closest("a");
  expect(link?.textContent).toContain("continues 1 earlier session");
  expect(link?.textContent).toMatch(/\d\d:05$/);
  expect(screen.queryByText("First half")).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "1 earlier session of Second half" }));
  expect(screen.getByText("First half")).toBeTruthy();
});

it("names the toggle of earlier sessions and subagents with the number that it shows", async () => {
  const asked = { counts: { prompts: 1 }, first_prompt: "Go" };
  const last = session({
    id: "a:2",
    title: "Second half",
    relationships: [{ kind: "continuation", parent_session_id: "a:1" }],
    children: 2,
    ...asked,
  });
  answerWith({
    "GET /api/sessions": { json: listOf(last, session({ id: "a:1", title: "First half", ...asked })) },
  });
  renderAt("/", <SessionsPage />);
  const name = "3 sessions: 1 earlier session, 2 subagents and forks of Second half";
  expect((await screen.findByRole("button", { name })).textContent).toBe("3");
});

it("groups sessions by project when asked, and keeps that in the address", async () => {
  const shop = session({
    id: "a:1",
    title: "Prompt number 1",
    project: { path: "/home/ada/shop", name: "shop" },
    updated_at: "2026-11-21T10:00:00Z",
  });
  const bank = session({
    id: "a:2",
    title: "Mind the bank",
    project: { path: "/home/ada/bank", name: "bank" },
    updated_at: "2026-11-21T09:00:00Z",
  });
  answerWith({ "GET /api/sessions": { json: listOf(shop, bank) } });
  const { container } = renderAt("/", <SessionsPage />);
  await screen.findByText("Mind the bank");
  expect(container.querySelectorAll(".session-group")).toHaveLength(1);
  await userEvent.click(screen.getByRole("button", { name: "By project" }));
  expect(location.search).toBe("?group=project");
  expect(screen.getByRole("region", { name: "shop" }).textContent).toContain("Prompt number 1");
  expect(screen.getByRole("region", { name: "bank" }).textContent).not.toContain("Prompt number 1");
});

it("says that no session matches, and clears the filters", async () => {
  const requests = answerWith({
    "GET /api/sessions?title=": { json: listOf() },
    "GET /api/sessions": { json: listOf(session({ title: "Mind the bank" })) },
  });
  renderAt("/?title=nothing", <SessionsPage />);
  await userEvent.click(await screen.findByRole("button", { name: "Clear the filters" }));
  expect(await screen.findByText("Mind the bank")).toBeTruthy();
  expect(location.search).toBe("");
  expect(requests.lines.some((line) => line.includes("title=nothing"))).toBe(true);
});

/** R-C22: a call of a model without a price makes the sum a lower bound. */
it("says that a cost is a lower bound where a price is unknown", () => {
  answerWith({});
  const priced = { usage: { calls: 3 }, cost: { amount: "0.04", currency: "USD" } } as Partial<SessionItem>;
  renderAt("/", <SessionRow session={session({ ...priced, unpriced_calls: 1 })} now={NOW} />);
  expect(screen.getByRole("link").textContent).toContain("≥ $0.04");
  expect(screen.getByTitle("1 call without a known price")).toBeTruthy();
});

it("shows the exact cost where all prices are known", () => {
  answerWith({});
  const priced = { usage: { calls: 3 }, cost: { amount: "0.04", currency: "USD" } } as Partial<SessionItem>;
  renderAt("/", <SessionRow session={session(priced)} now={NOW} />);
  expect(screen.getByRole("link").textContent).toContain("$0.04");
  expect(screen.getByRole("link").textContent).not.toContain("≥");
});

it("shows no cost of a session whose answers all count where they come from", () => {
  answerWith({});
  const carried = {
    usage: { calls: 0 },
    relationships: [{ kind: "continuation", parent_session_id: "claude-code:one" }],
  } as Partial<SessionItem>;
  renderAt("/", <SessionRow session={session(carried)} now={NOW} />);
  expect(screen.getByRole("link").textContent).not.toContain("$0");
  expect(screen.getAllByTitle(/shared answers count in the session they come from/)[0]?.textContent).toBe(
    "–",
  );
});

it("folds subagents under their parent until they are opened", async () => {
  const child = session({
    id: "claude-code:one.a1b2c3",
    title: "Look around",
    title_source: "generated",
    first_prompt: "Look at every door",
    relationships: [{ kind: "subagent", parent_session_id: "claude-code:one" }],
  });
  const requests = answerWith({ "GET /api/sessions?parent=claude-code": { json: listOf(child) } });
  renderAt("/", <SessionRow session={session({ title: "Mind the bank", children: 1 })} now={NOW} />);
  expect(requests.lines.filter((line) => line.includes("parent="))).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "1 subagent or fork of Mind the bank" }));
  const name = await screen.findByText("Look around");
  const link = name.closest("a");
  expect(link?.getAttribute("href")).toBe("/sessions/claude-code:one.a1b2c3");
  expect(link?.textContent).toContain("Look at every door");
  expect(link?.textContent).toContain("subagent");
});

const NONE: UsageTotals = {
  calls: 0,
  unpriced_calls: 0,
  unknown_calls: 0,
  covered_calls: 0,
  session_totals: 0,
  input: 0,
  tool_prompt: 0,
  cache_read: 0,
  cache_write_5m: 0,
  cache_write_1h: 0,
  cache_write: 0,
  output: 0,
  reasoning: 0,
  tokens: 0,
  cost: null,
  reported_cost: null,
} as UsageTotals;

/** R-C22. */
it("shows an unknown price as unknown and not as zero", () => {
  const priced: UsageTotals = { ...NONE, calls: 2, input: 10, tokens: 10, cost: 5.1 };
  const unpriced: UsageTotals = { ...NONE, calls: 1, unpriced_calls: 1, input: 4, cache_read: 3, tokens: 7 };
  renderAt(
    "/",
    <UsageTable
      report={
        {
          by: "model",
          then_by: null,
          totals: { ...priced, calls: 3, unpriced_calls: 1 },
          active_ms: null,
        } as UsageReport
      }
      rows={[
        { name: "opus", label: "opus", totals: priced, parts: [], block: null, active_ms: null },
        {
          name: "mystery-model-9",
          label: "mystery-model-9",
          totals: unpriced,
          parts: [],
          block: null,
          active_ms: null,
        },
      ]}
      measure={COST}
      filters={{}}
    />,
  );
  const mystery = screen.getByRole("row", { name: /mystery-model-9/ });
  expect(within(mystery).getByText("unknown")).toBeTruthy();
  expect(mystery.textContent).not.toContain("$");
  expect(screen.getByRole("row", { name: /Total/ }).textContent).toContain("≥ $5.1");
});

it("shows how long sessions were active on a day, and no such column where that is not known", () => {
  const row = { name: "2026-11-20", label: null, totals: NONE, parts: [], block: null, active_ms: 5_400_000 };
  const table = (report: Partial<UsageReport>) => (
    <UsageTable
      report={{ by: "day", then_by: null, totals: NONE, ...report } as UsageReport}
      rows={[row]}
      measure={COST}
      filters={{}}
    />
  );
  const shown = renderAt("/", table({ active_ms: 5_400_000 }));
  expect(screen.getByRole("row", { name: /2026-11-20/ }).textContent).toContain("1 h 30 min");
  shown.unmount();
  renderAt("/", table({ active_ms: null }));
  expect(screen.queryByRole("columnheader", { name: "Active" })).toBeNull();
});

it("says that no tool touched a path", async () => {
  answerWith({
    "GET /api/files/touched": { json: { items: [] } },
    "GET /api/files?": { json: { sessions: [], items: [], next_cursor: null } },
  });
  const { unmount } = renderAt("/files?text=no-such-file", <FilesPage />);
  expect(await screen.findByRole("heading", { name: "No file here" })).toBeTruthy();
  unmount();
  renderAt("/files?path=no/such/file", <FilesPage />);
  expect(await screen.findByText("No tool call read or changed a file with this path.")).toBeTruthy();
});

it("sends no query that is too long, by the characters of Unicode", async () => {
  const nothing = { items: [], next_cursor: null, total: 0, total_is_exact: true, pending: 0 };
  const requests = answerWith({ "GET /api/search": { json: nothing } });
  const searches = () => requests.lines.filter((line) => line.startsWith("GET /api/search"));
  const { unmount } = renderAt(`/search?q=${encodeURIComponent("📦".repeat(1000))}`, <SearchPage />);
  expect(await screen.findByRole("heading", { name: /^Nothing found for/ })).toBeTruthy();
  await waitFor(() => expect(searches()).toHaveLength(1));
  unmount();
  renderAt(`/search?q=${"x".repeat(1001)}`, <SearchPage />);
  expect(screen.getByRole("alert").textContent).toContain("It has 1,001 characters; the limit is 1,000.");
  expect(searches()).toHaveLength(1);
});

it("suggests another query in the same scope", async () => {
  answerWith({
    "GET /api/search": {
      json: {
        items: [],
        next_cursor: null,
        total: 0,
        total_is_exact: true,
        counted: "sessions",
        unindexed: 0,
        suggestion: "lexer",
      },
    },
  });
  renderAt("/search?q=leger&project=%2Fwork%2Fshop", <SearchPage />);
  const link = await screen.findByRole("link", { name: "lexer" });
  expect(link.getAttribute("href")).toBe("/search?q=lexer&project=%2Fwork%2Fshop");
});
