import { describe, expect, it } from "vitest";
import type { Fate, HistoryEvent, Message } from "@/api/types";
import { type Entry, entriesOf } from "@/session/entries";
import type { SessionWindow } from "@/session/window";
import { message, placement } from "./samples";

interface Place {
  position: number;
  fate?: Fate;
  message?: Partial<Message>;
}

function windowOf(places: Place[], events: HistoryEvent[] = []): SessionWindow {
  const messages = places.map(({ position, fate = "active", message: fields = {} }) => ({
    message: message({ id: `m${position}`, ...fields }),
    placement: placement({ position, message_id: `m${position}`, fate }),
  }));
  return { messages, events, hasBefore: false, hasAfter: false };
}

function kinds(entries: Entry[]): string[] {
  return entries.map((entry) => (entry.kind === "message" ? entry.message.id : entry.kind));
}

const record = (id: string, position: number): HistoryEvent => ({
  type: "record",
  id,
  kind: "mode",
  position,
});

describe("order", () => {
  it("is that of the records", () => {
    const events: HistoryEvent[] = [{ type: "interrupt", id: "i", position: 15 }];
    expect(kinds(entriesOf(windowOf([{ position: 10 }, { position: 20 }], events)))).toEqual([
      "m10",
      "event",
      "m20",
    ]);
  });

  it("at one position puts a rewind before the prompt that followed from it, and a note after its message", () => {
    const events: HistoryEvent[] = [record("r", 20), { type: "rewind", id: "w", position: 20 }];
    expect(kinds(entriesOf(windowOf([{ position: 10 }, { position: 20 }], events)))).toEqual([
      "m10",
      "event",
      "m20",
      "records",
    ]);
  });
});

it("folds neighbouring records into one line and keeps every one of them", () => {
  const entries = entriesOf(windowOf([{ position: 10 }], [record("a", 1), record("b", 2), record("c", 30)]));
  expect(kinds(entries)).toEqual(["records", "m10", "records"]);
  expect(
    entries.flatMap((entry) => (entry.kind === "records" ? entry.events.map(({ id }) => id) : [])),
  ).toEqual(["a", "b", "c"]);
});

it("says a fate once for a stretch, and not again behind a stretch that was left", () => {
  const places: Place[] = [
    { position: 1, fate: "compacted" },
    { position: 2, fate: "compacted" },
    { position: 3, fate: "rewound" },
    { position: 4, fate: "rewound" },
    { position: 5, fate: "compacted" },
    { position: 6 },
    { position: 7, fate: "rewound" },
  ];
  const said = entriesOf(windowOf(places)).map((entry) => (entry.kind === "message" ? entry.newFate : null));
  expect(said).toEqual(["compacted", undefined, "rewound", undefined, undefined, undefined, "rewound"]);
});

it("marks the first entry of each day, but lets no record start one", () => {
  const events: HistoryEvent[] = [{ ...record("r", 15), created_at: "2026-11-19T10:00:00Z" } as HistoryEvent];
  const entries = entriesOf(
    windowOf(
      [
        { position: 10, message: { created_at: "2026-11-20T10:00:00Z" } },
        { position: 20, message: { created_at: "2026-11-20T11:00:00Z" } },
        { position: 30 },
        { position: 40, message: { created_at: "2026-11-21T08:00:00Z" } },
      ],
      events,
    ),
  );
  expect(entries.filter((entry) => entry.newDay).map((entry) => entry.position)).toEqual([10, 40]);
});
