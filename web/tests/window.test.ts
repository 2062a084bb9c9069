import { describe, expect, it } from "vitest";
import type { HistoryEvent, SessionUpdate, WindowPage } from "@/api/types";
import { addedAtEnd } from "@/session/timeline/tail";
import {
  applyChange,
  extendAfter,
  extendBefore,
  extent,
  holds,
  openWindow,
  renewTail,
  tailStart,
  trim,
} from "@/session/window";
import { message, placement, session } from "./samples";

function page(positions: number[], has: { before?: boolean; after?: boolean } = {}): WindowPage {
  return {
    items: positions.map((position) => message({ id: `m${position}` })),
    rows: positions.map((position) => placement({ position, message_id: `m${position}` })),
    events: [],
    has_before: has.before ?? false,
    has_after: has.after ?? false,
  };
}

function ids(window: ReturnType<typeof openWindow>): string[] {
  return window.messages.map(({ message }) => message.id);
}

describe("a window grows at both ends", () => {
  const middle = openWindow(page([40, 50, 60], { before: true, after: true }));

  it("before what is loaded", () => {
    const grown = extendBefore(middle, page([10, 20, 30]));
    expect(ids(grown)).toEqual(["m10", "m20", "m30", "m40", "m50", "m60"]);
    expect([grown.hasBefore, grown.hasAfter]).toEqual([false, true]);
  });

  it("after what is loaded", () => {
    const grown = extendAfter(middle, page([70, 80], { before: true }));
    expect(ids(grown)).toEqual(["m40", "m50", "m60", "m70", "m80"]);
    expect([grown.hasBefore, grown.hasAfter]).toEqual([true, false]);
  });

  it("without taking a message or an event twice", () => {
    const noted: HistoryEvent = { type: "record", id: "r1", kind: "mode", position: 60 };
    const one = openWindow({ ...page([50, 60]), events: [noted] });
    const grown = extendAfter(one, { ...page([60, 70]), events: [noted] });
    expect(ids(grown)).toEqual(["m50", "m60", "m70"]);
    expect(grown.events).toEqual([noted]);
  });

  it("keeps two events of one position apart", () => {
    const events: HistoryEvent[] = [
      { type: "record", id: "r1", kind: "mode", position: 60 },
      { type: "record", id: "r2", kind: "mode", position: 60 },
    ];
    const grown = extendAfter(openWindow(page([50])), { ...page([60]), events });
    expect(grown.events).toEqual(events);
  });
});

describe("what a window holds", () => {
  it("is what lies between its ends, or beyond them where there is nothing more", () => {
    const start = openWindow(page([10, 20], { after: true }));
    expect(holds(start, 15)).toBe(true);
    expect(holds(start, 0)).toBe(true);
    expect(holds(start, 21)).toBe(false);
  });

  it("is nothing in a session without messages", () => {
    expect(extent(openWindow(page([])))).toBeNull();
    expect(holds(openWindow(page([])), 0)).toBe(false);
  });
});

describe("the end of a session that grows", () => {
  it("is asked for again only where it is loaded", () => {
    expect(tailStart(openWindow(page([10, 20], { after: true })))).toBeNull();
    expect(tailStart(openWindow(page([10, 20])))).toBe(Number.NEGATIVE_INFINITY);
    const many = Array.from({ length: 50 }, (_, index) => index * 10);
    expect(tailStart(openWindow(page(many)))).toBe(190);
  });

  it("takes the place of all of a short session, though a fork's shared part stands below zero", () => {
    const window = openWindow(page([-20, -10, 5]));
    const renewed = renewTail(window, tailStart(window) ?? 0, page([-20, -10, 5, 8]));
    expect(ids(renewed)).toEqual(["m-20", "m-10", "m5", "m8"]);
  });

  it("takes the place of what was loaded", () => {
    const window = openWindow(page([10, 20, 30]));
    const fresh = page([20, 30, 40]);
    const late = fresh.items[0];
    if (late) late.parts = [{ type: "text", text: "came late" }];
    const renewed = renewTail(window, 10, fresh);
    expect(ids(renewed)).toEqual(["m10", "m20", "m30", "m40"]);
    expect(renewed.messages[1]?.message.parts).toEqual([{ type: "text", text: "came late" }]);
  });
});

describe("a change that a stream tells of", () => {
  function change(fields: Partial<SessionUpdate>): SessionUpdate {
    return {
      sequence: 1,
      session: session(),
      items: [],
      rows: [],
      events: [],
      gone_messages: [],
      gone_events: [],
      children: [],
      ...fields,
    };
  }
  const told = (position: number, text: string) =>
    change({
      items: [message({ id: `m${position}`, parts: [{ type: "text", text }] })],
      rows: [placement({ position, message_id: `m${position}` })],
    });

  it("adds what is new at the end, and takes the place of what it changes", () => {
    const window = openWindow(page([10, 20]));
    const grown = applyChange(applyChange(window, told(30, "new")), told(20, "changed"));
    expect(ids(grown)).toEqual(["m10", "m20", "m30"]);
    expect(grown.messages[1]?.message.parts).toEqual([{ type: "text", text: "changed" }]);
    expect(applyChange(grown, told(30, "new")).messages).toEqual(grown.messages);
  });

  it("puts what came late where it belongs", () => {
    expect(ids(applyChange(openWindow(page([10, 30])), told(20, "late")))).toEqual(["m10", "m20", "m30"]);
  });

  it("changes the fate of a message that it does not tell anew", () => {
    const rows = [placement({ position: 10, message_id: "m10", fate: "rewound" })];
    const window = applyChange(openWindow(page([10])), change({ rows }));
    expect(window.messages[0]?.placement.fate).toBe("rewound");
    expect(window.messages[0]?.message.id).toBe("m10");
  });

  it("leaves out what lies beyond the part that is loaded", () => {
    const window = openWindow(page([10, 20], { after: true }));
    const events: HistoryEvent[] = [{ type: "interrupt", id: "i", position: 99 }];
    const grown = applyChange(window, { ...told(90, "far"), events });
    expect(ids(grown)).toEqual(["m10", "m20"]);
    expect(grown.events).toEqual([]);
  });

  it("takes away what is gone", () => {
    const events: HistoryEvent[] = [
      { type: "interrupt", id: "i", position: 20 },
      { type: "interrupt", id: "j", position: 20 },
    ];
    const window = { ...openWindow(page([10, 20])), events };
    const left = applyChange(window, change({ gone_messages: ["m10"], gone_events: [[20, "i"]] }));
    expect(ids(left)).toEqual(["m20"]);
    expect(left.events).toEqual(events.slice(1));
  });

  it("loses a result that found its call", () => {
    const orphan: HistoryEvent = {
      type: "tool-result",
      position: 20,
      tool_call_id: "call",
      result: { id: "r1" },
    };
    const window = { ...openWindow(page([10, 20])), events: [orphan] };
    expect(applyChange(window, change({ gone_events: [[20, "call:r1"]] })).events).toEqual([]);
    expect(applyChange(window, change({ gone_events: [[10, "call:r1"]] })).events).toEqual([orphan]);
  });

  it("begins a session that was empty", () => {
    expect(ids(applyChange(openWindow(page([])), told(0, "first")))).toEqual(["m0"]);
  });
});

it("counts what came behind the end, and nothing where the end is not loaded", () => {
  const before = openWindow(page([10, 20]));
  expect(addedAtEnd(before, openWindow(page([10, 20, 30, 40])))).toBe(2);
  expect(addedAtEnd({ ...before, hasAfter: true }, openWindow(page([10, 20, 30])))).toBe(0);
  expect(addedAtEnd(null, before)).toBe(0);
});

describe("a window that has grown too large", () => {
  const many = openWindow(page(Array.from({ length: 2000 }, (_, index) => index)));

  it("lets go of its other end, and says that there is more", () => {
    const down = trim(many, false);
    expect([down.messages.length, down.hasBefore, down.hasAfter]).toEqual([1500, true, false]);
    expect(extent(down)).toEqual({ first: 500, last: 1999 });
    const up = trim(many, true);
    expect([extent(up)?.last, up.hasBefore, up.hasAfter]).toEqual([1499, false, true]);
  });

  it("is left alone before", () => {
    const small = openWindow(page([1, 2]));
    expect(trim(small, true)).toBe(small);
  });
});
