import { describe, expect, it } from "vitest";
import { parseTags } from "@/annotations/annotations";
import type { SearchGroup, SearchHit, SessionState } from "@/api/types";
import { labelsOfRows, projectLabels } from "@/filters/project-label";
import { joinGroups } from "@/search/use-search";
import { commandText } from "@/session/message/message-text";
import { foldChains, foldForks, groupByDay, groupByProject, isEmpty } from "@/sessions/session-groups";
import { titleOf } from "@/sessions/session-title";
import { evidenceOf, isActive, stateAt, stateLabel } from "@/sessions/state-badge";
import { withChanges } from "@/shell/use-live";
import { session } from "./samples";

describe("sessions under their days", () => {
  it("stay in their order, each day once", () => {
    const sessions = ["2026-11-21T08:00:00Z", "2026-11-21T07:00:00Z", "2026-11-20T12:00:00Z", undefined].map(
      (updated_at, index) => session({ id: `s${index}`, ...(updated_at ? { updated_at } : {}) }),
    );
    const groups = groupByDay(sessions, (item) => item.updated_at, new Date("2026-11-21T09:00:00Z"));
    expect(groups.map(({ title, sessions }) => [title, sessions.map(({ id }) => id)])).toEqual([
      ["Today", ["s0", "s1"]],
      ["Yesterday", ["s2"]],
      ["Time unknown", ["s3"]],
    ]);
  });

  it("are called by their id where they have no title", () => {
    expect(titleOf(session({ id: "claude-code:0f3b9a77-1234" }))).toBe("Untitled 0f3b9a77");
    expect(titleOf(session({ title: "  Fix\n the build " }))).toBe("Fix the build");
  });
});

it("stand under their project, the project of the first one first", () => {
  const at = (id: string, path?: string) =>
    session({ id, ...(path ? { project: { path, name: path.split("/").at(-1) ?? "" } } : {}) });
  const groups = groupByProject([at("1", "/a/web"), at("2"), at("3", "/b/web"), at("4", "/a/web")]);
  expect(groups.map(({ title, sessions }) => [title, sessions.map(({ id }) => id)])).toEqual([
    ["web · /a", ["1", "4"]],
    ["No project", ["2"]],
    ["web · /b", ["3"]],
  ]);
});

describe("what a session is doing", () => {
  const now = new Date("2026-11-21T09:00:00Z");
  const state = (name: SessionState["state"], more: Partial<SessionState> = {}): SessionState => ({
    state: name,
    evidence: "open-call",
    detail: null,
    since: "2026-11-21T08:59:00Z",
    quiet_at: null,
    doing: null,
    ...more,
  });

  it("turns from running to quiet by itself", () => {
    const running = state("running", { quiet_at: "2026-11-21T09:01:00Z" });
    expect(stateAt(running, now)).toBe("running");
    expect(isActive(running, now)).toBe(true);
    expect(stateAt(running, new Date("2026-11-21T09:01:00Z"))).toBe("quiet");
    expect(stateAt(state("running"), new Date("2027-01-01T00:00:00Z"))).toBe("running");
  });

  it("is said where it is news", () => {
    expect(stateLabel(state("waiting", { evidence: "approval" }), now)).toBe("Waiting for permission");
    expect(stateLabel(state("waiting", { evidence: "question" }), now)).toBe("Waiting for an answer");
    expect(stateLabel(state("killed", { detail: "exit 137" }), now)).toBe("Killed, exit 137");
    expect(stateLabel(state("quiet"), now)).toMatch(/^Idle since \d/);
    expect(stateLabel(state("quiet", { since: "2026-11-19T08:00:00Z" }), now)).toBeNull();
    expect(stateLabel(state("done"), now)).toBeNull();
  });

  it("names its evidence", () => {
    expect(evidenceOf(state("done", { evidence: "turn-ended", detail: "turn_duration" }))).toBe(
      "The agent recorded the end of the turn (turn_duration)",
    );
  });
});

it("shows a newer summary in the list at once, where it stands", () => {
  const page = {
    items: [session({ id: "a" }), session({ id: "b" })],
    next_cursor: null,
    total: 2,
    change_sequence: 1,
  };
  const newer = session({ id: "b", title: "Newer" });
  expect(withChanges(page, new Map([["b", newer]])).items).toEqual([page.items[0], newer]);
  expect(withChanges(page, new Map([["c", newer]]))).toBe(page);
});

it("reads tags between commas, each once", () => {
  expect(parseTags(" a, b  c ,, a")).toEqual(["a", "b c"]);
  expect(parseTags(" ,")).toEqual([]);
});

it("folds forks under the session they came out of, where the first of them stood", () => {
  const fork = (id: string, parent: string) =>
    session({ id, relationships: [{ kind: "fork", parent_session_id: parent }] });
  const heads = (...sessions: ReturnType<typeof session>[]) => foldForks(sessions).map(({ id }) => id);
  expect(heads(session({ id: "x" }), fork("c", "b"), fork("b", "a"), session({ id: "a" }))).toEqual([
    "x",
    "a",
  ]);
  expect(heads(fork("b", "elsewhere"), session({ id: "a" }))).toEqual(["b", "a"]);
  expect(heads(fork("a", "b"), fork("b", "a"))).toEqual(["a", "b"]);
});

it("lets the last continuation stand for its chain, with the earlier sessions under it", () => {
  const next = (id: string, parent: string) =>
    session({ id, relationships: [{ kind: "continuation", parent_session_id: parent }] });
  const fold = (...sessions: ReturnType<typeof session>[]) => {
    const { sessions: heads, earlier } = foldChains(sessions);
    return heads.map(({ id }) => [id, (earlier.get(id) ?? []).map((each) => each.id)]);
  };
  expect(fold(next("c", "b"), session({ id: "x" }), next("b", "a"), session({ id: "a" }))).toEqual([
    ["c", ["b", "a"]],
    ["x", []],
  ]);
  expect(fold(next("c", "a"), next("b", "a"), session({ id: "a" }))).toEqual([
    ["c", ["a"]],
    ["b", []],
  ]);
  expect(fold(next("b", "elsewhere"))).toEqual([["b", []]]);
  expect(fold(next("a", "b"), next("b", "a"))).toEqual([["a", ["b"]]]);
});

describe("an empty session", () => {
  it.each([
    ["holds nothing", session({ counts: {} })],
    ["holds only records and commands", session({ counts: { messages: 3, prompts: 1, events: 5 } })],
    ["holds only /clear", session({ counts: { messages: 3, prompts: 1 }, first_prompt: "/clear" })],
  ])("%s", (_, found) => expect(isEmpty(found)).toBe(true));

  const annotations = {
    title: null,
    starred: true,
    archived: false,
    tags: [],
    note: null,
    pins: [],
    changed_at: "",
  };
  it.each([
    ["a prompt without an answer", session({ counts: { prompts: 1 }, first_prompt: "Fix it" })],
    ["an answer", session({ counts: { steps: 1 }, first_prompt: "/clear" })],
    ["a model call", session({ counts: {}, usage: { calls: 1 } })],
    ["a tool call", session({ counts: { tool_calls: 1 } })],
    ["an image", session({ counts: { prompts: 1, files: 1 } })],
    ["a subagent", session({ counts: {}, children: 1 })],
    ["a star", session({ counts: {}, annotations })],
  ])("has not %s", (_, found) => expect(isEmpty(found)).toBe(false));
});

it("joins hits of one session that two pages share", () => {
  const hit = (message_id: string) => ({ message_id }) as SearchHit;
  const group = (id: string, ...hits: string[]): SearchGroup => ({
    session: { id, agent: "claude-code", title: null, project: null, project_name: null, user: null },
    hits: hits.map(hit),
    names: [],
    matches: null,
    matches_is_exact: false,
  });
  const joined = joinGroups([group("a", "1"), group("b", "2"), group("b", "3"), group("a", "4")]);
  expect(joined.map(({ session, hits }) => [session.id, hits.map((found) => found.message_id)])).toEqual([
    ["a", ["1"]],
    ["b", ["2", "3"]],
    ["a", ["4"]],
  ]);
});

it.each([
  ["<command-name>/model</command-name>\n<command-args>opus</command-args>", "/model opus"],
  ["<command-message>compact</command-message>\n<command-name>/compact</comm", "/compact"],
  ["<bash-input>ls -la</bash-input>", "! ls -la"],
  ["<user_shell_command>\n<command>\nls\n</command>\n<result>\nExit code: 0\nOutput:\na", "! ls"],
  ["/already plain", "/already plain"],
])("shows %j as it was typed", (text, typed) => expect(commandText(text)).toBe(typed));

it("tells projects of one name apart by the folder above", () => {
  const labels = projectLabels([
    { path: "/home/ada/shop", name: "shop" },
    { path: "/srv/shop", name: "shop" },
    { path: "/srv/bank", name: "bank" },
  ]);
  expect([...labels.values()]).toEqual(["shop · /home/ada", "shop · /srv", "bank"]);
  const [row, none] = [
    { name: "/srv/shop", label: "shop" },
    { name: null, label: null },
  ];
  expect([...labelsOfRows([row, row, none])]).toEqual([["/srv/shop", "shop"]]);
});
