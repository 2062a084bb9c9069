import { describe, expect, it } from "vitest";
import type { HistoryEvent, Message } from "@/api/types";
import { momentsOf, pauseBetween, windowAt } from "@/session/replay";
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

it("comes as it came: messages, results and events, but no quiet record", () => {
  expect(momentsOf(whole).map(({ position }) => position)).toEqual([10, 20, 30, 40, 50]);
  expect(momentsOf(whole)[2]?.at).toBe(Date.parse("2026-11-21T10:00:05Z"));
  expect(momentsOf(whole)[4]?.at).toBeNull();
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

describe("the pause between two moments", () => {
  const at = (seconds: number | null) => ({ position: 0, at: seconds === null ? null : seconds * 1000 });

  it("is as long as it was then, faster, and never long", () => {
    expect(pauseBetween(at(10), at(12), 1)).toBe(2000);
    expect(pauseBetween(at(10), at(12), 4)).toBe(500);
    expect(pauseBetween(at(10), at(4000), 1)).toBe(3000);
  });

  it("is none where a time is not known, or goes back", () => {
    expect(pauseBetween(at(null), at(12), 1)).toBe(0);
    expect(pauseBetween(null, at(12), 1)).toBe(0);
    expect(pauseBetween(at(12), at(10), 1)).toBe(0);
  });
});
