import { describe, expect, it } from "vitest";
import type { HistoryEvent, WindowPage } from "@/api/types";
import { extendAfter, extendBefore, extent, holds, openWindow, renewTail, tailStart } from "@/session/window";
import { message, placement } from "./samples";

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
    expect(tailStart(openWindow(page([10, 20])))).toBe(-1);
    const many = Array.from({ length: 50 }, (_, index) => index * 10);
    expect(tailStart(openWindow(page(many)))).toBe(190);
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
