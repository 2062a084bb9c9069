import { expect, it } from "vitest";
import type { StatusResponse, SyncProgress } from "@/api/types";
import { lineOf, unreadBytes } from "@/shell/status-line";

const WAITING: SyncProgress = {
  state: "waiting",
  phase: null,
  done: 0,
  total: 0,
  passes: 1,
  started_at: null,
  ended_at: null,
  error: null,
  problems: [],
};

const line = (sync: Partial<SyncProgress>, unindexed = 0) =>
  lineOf({ sync: { ...WAITING, ...sync }, search: { unindexed } });

it("is silent while nothing happens, or files are only looked at", () => {
  expect(line({})).toBeNull();
  expect(line({ state: "running", phase: "find", done: 3, total: 900 })).toBeNull();
});

it("says how far reading and indexing are", () => {
  expect(line({ state: "running", phase: "read", done: 12_000_000, total: 300_000_000 })).toEqual({
    text: "Reading logs, newest first: 12.0 MB of 300.0 MB",
    done: 12_000_000,
    total: 300_000_000,
  });
  expect(line({ state: "running", phase: "index", done: 5, total: 2000 })?.text).toBe(
    "Indexing for search, 5 of 2,000",
  );
});

it("says that something is not searchable yet, and that reading failed", () => {
  expect(line({}, 1200)?.text).toBe("1,200 messages are not searchable yet");
  expect(line({}, 1)?.text).toBe("1 message is not searchable yet");
  expect(line({ state: "failed", error: "disk full" })?.text).toBe("Reading the logs failed: disk full");
});

it("counts what lists and search do not cover yet", () => {
  const unread = (sync: Partial<SyncProgress>) =>
    unreadBytes({ sync: { ...WAITING, ...sync } } as StatusResponse);
  expect(unread({ state: "running", phase: "read", done: 100, total: 300 })).toBe(200);
  expect(unread({ state: "running", phase: "index", done: 100, total: 300 })).toBe(0);
  expect(unread({})).toBe(0);
  expect(unreadBytes(null)).toBe(0);
});
