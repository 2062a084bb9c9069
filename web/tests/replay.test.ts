import { describe, expect, it } from "vitest";
import type { HistoryEvent, Message, ReplayedEvent } from "@/api/types";
import { momentsOf, windowAt } from "@/session/replay/moments";
import type { SessionWindow } from "@/session/window";
import { message, placement, toolCall } from "./samples";

const call = toolCall({
  state: "output-error",
  results: [
    { id: "r1", completed_at: "2026-11-21T10:00:05Z" },
    { id: "r2", completed_at: "2026-11-21T10:00:09Z", status: "error" },
  ],
});

function placed(position: number, fields: Partial<Message>, results: [string, number][] = []) {
  return {
    message: message({ id: `m${position}`, ...fields }),
    placement: placement({ position, message_id: `m${position}`, results }),
  };
}

const events: HistoryEvent[] = [
  { type: "record", id: "q", kind: "mode", position: 15 },
  { type: "interrupt", id: "i", position: 50 },
];

const whole: SessionWindow = {
  messages: [
    placed(10, { created_at: "2026-11-21T10:00:00Z" }),
    placed(20, { created_at: "2026-11-21T10:00:02Z", parts: [call] }, [
      ["r1", 30],
      ["r2", 40],
    ]),
  ],
  events,
  hasBefore: false,
  hasAfter: true,
};

it("comes as the server tells it: each position once, without what is not shown", () => {
  const told = (type: string, position: number, delay: number, created_at?: string) =>
    ({ delay, event: { type, position, ...(created_at && { created_at }) } }) as ReplayedEvent;
  const moments = momentsOf([
    told("user", 10, 0, "2026-11-21T10:00:00Z"),
    told("run-metadata", 15, 0.5, "2026-11-21T10:00:01Z"),
    told("turn-start", 20, 0.25),
    told("assistant", 20, 0.25, "2026-11-21T10:00:02Z"),
    told("interrupt", 50, 0),
  ]);
  expect(moments.map(({ position }) => position)).toEqual([10, 20, 50]);
  expect(moments.map(({ delay }) => delay)).toEqual([0, 1, 0]);
  expect(moments.map(({ at }) => at)).toEqual([
    Date.parse("2026-11-21T10:00:00Z"),
    Date.parse("2026-11-21T10:00:02Z"),
    null,
  ]);
});

describe("what is there at a moment", () => {
  const callAt = (position: number) => {
    const part = windowAt(whole, position).messages[1]?.message.parts?.[0];
    return part?.type === "tool-call" ? [part.state, part.results?.length] : null;
  };

  it("has the call before its results, and each result when it came", () => {
    expect(callAt(10)).toBeNull();
    expect(callAt(20)).toEqual(["input-available", 0]);
    expect(callAt(30)).toEqual(["output-available", 1]);
    expect(callAt(40)).toEqual(["output-error", 2]);
  });

  it("ends there", () => {
    expect(windowAt(whole, 40).events.map(({ position }) => position)).toEqual([15]);
    expect(windowAt(whole, 40).hasAfter).toBe(false);
  });
});
