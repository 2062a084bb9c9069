// @vitest-environment happy-dom

import { cleanup, render } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";
import { OWN_ACTIONS, sentenceOf, TEAM_ACTIONS } from "@/hub/audit-sentences";
import type { AuditEntry } from "@/hub/schema";

const NAMES = { "u-1": "Ana", "u-2": "Ben", "toy:s": "Mend the till", "m-1": "laptop", "s-1": "nightly" };

function said(
  action: string,
  subject: string,
  detail: string | null = null,
  more: Partial<AuditEntry> = {},
): string {
  const entry = {
    actor: "u-1",
    action,
    subject,
    owner: "u-1",
    detail,
    times: 1,
    last_at: "2026-11-28T09:00:00Z",
  };
  return render(sentenceOf({ ...entry, ...more }, NAMES)).container.textContent ?? "";
}

afterEach(cleanup);

describe("an entry of the audit log", () => {
  it.each([
    ["read", "toy:s", null, "Ana read Mend the till"],
    ["share", "toy:s", "private", "Ana showed Mend the till to nobody else any more"],
    ["share", "toy:s", "team", "Ana showed Mend the till to the team"],
    ["share", "toy:s", "people u-2 u-9", "Ana showed Mend the till to Ben, u-9"],
    ["make token", "s-1", "push read", "Ana made the token nightly, which may push and read"],
    ["end token", "s-9", null, "Ana revoked a token or a browser"],
    ["forget session", "toy:gone", "on laptop", "Ana forgot toy:gone, on laptop"],
    ["forget session", "toy:s", null, "Ana forgot Mend the till"],
    ["change role", "u-2", "viewer", "Ana made Ben a viewer"],
    [
      "change rules",
      "1",
      '{"retention_days": 30, "visibility": "team"}',
      "Ana changed the rules: sessions are forgotten after 30 days, new sessions are shown to the team",
    ],
    [
      "change rules",
      "1",
      '{"retention_days": null}',
      "Ana changed the rules: no session is forgotten by its age",
    ],
    ["change rules", "1", '{"new_field": 1}', "Ana changed the rules"],
    ["change team", "1", '{"name":"Shop"}', "Ana changed the team: its name is Shop"],
    [
      "set a budget",
      "3",
      '{"scope":"person","subject":"u-2","limit":250.5}',
      "Ana set a budget for Ben: $250.50 a month",
    ],
    ["set a budget", "3", '{"scope":"team","limit":100}', "Ana set a budget for the team: $100 a month"],
    ["change rules", "1", "torn {", "Ana changed the rules"],
    ["dance", "m-1", null, "Ana dance laptop"],
  ])("%s %s %s", (action, subject, detail, sentence) => {
    expect(said(action, subject, detail)).toBe(sentence);
  });

  it("says how often, and by whom without a name", () => {
    expect(said("read", "toy:s", null, { times: 6 })).toBe("Ana read Mend the till, 6 times");
    expect(said("read", "toy:s", null, { actor: "link:l-1" })).toBe(
      "Somebody with a link read Mend the till",
    );
    expect(said("forget old session", "toy:x", "older than 30 days", { actor: "hub" })).toBe(
      "The hub forgot toy:x, by the rule for sessions older than 30 days",
    );
  });

  it("says something of every kind", () => {
    for (const action of Object.keys({ ...OWN_ACTIONS, ...TEAM_ACTIONS }))
      expect(said(action, "toy:s", '"x"'), action).toMatch(/^Ana \w/);
  });
});
