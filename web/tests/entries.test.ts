import { describe, expect, it } from "vitest";
import type { Fate, HistoryEvent, Message } from "@/api/types";
import { PROMPTS_AND_ANSWERS } from "@/session/blocks";
import type { Entry } from "@/session/entries";
import { entriesOf as entriesWith } from "@/session/entries";
import type { SessionWindow } from "@/session/window";
import { message, placement } from "./samples";

interface Place {
  position: number;
  fate?: Fate;
  cause?: string;
  message?: Partial<Message>;
}

function windowOf(places: Place[], events: HistoryEvent[] = []): SessionWindow {
  const messages = places.map(({ position, fate = "active", cause, message: fields = {} }) => ({
    message: message({ id: `m${position}`, ...fields }),
    placement: placement({ position, message_id: `m${position}`, fate, fate_cause: cause ?? null }),
  }));
  return { messages, events, hasBefore: false, hasAfter: false };
}

/** With every branch open, unless one says otherwise. */
function entriesOf(window: SessionWindow, isOpen = () => true): Entry[] {
  return entriesWith(window, isOpen);
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

describe("hidden blocks", () => {
  const window = windowOf(
    [
      { position: 10, message: { role: "user", origin: "prompt" } },
      {
        position: 20,
        message: { role: "assistant", parts: [{ type: "tool-call", tool_call_id: "t", tool_name: "Bash" }] },
      },
      { position: 30, message: { role: "assistant", parts: [{ type: "text", text: "done" }] } },
      { position: 40, message: { role: "user", origin: "notification" } },
    ],
    [record("r", 25), { type: "interrupt", id: "i", position: 35 }],
  );

  it("leave out messages of nothing else, and records", () => {
    expect(kinds(entriesWith(window, () => true, PROMPTS_AND_ANSWERS))).toEqual(["m10", "m30", "event"]);
    expect(kinds(entriesWith(window, () => true, new Set(["text"])))).not.toContain("m30");
  });
});

it("folds neighbouring records into one line and keeps every one of them", () => {
  const entries = entriesOf(windowOf([{ position: 10 }], [record("a", 1), record("b", 2), record("c", 30)]));
  expect(kinds(entries)).toEqual(["records", "m10", "records"]);
  expect(
    entries.flatMap((entry) => (entry.kind === "records" ? entry.events.map(({ id }) => id) : [])),
  ).toEqual(["a", "b", "c"]);
});

it("says a fate once for a stretch, and not again behind what was left or kept", () => {
  const places: Place[] = [
    { position: 1, fate: "compacted", cause: "c1" },
    { position: 2, fate: "compacted", cause: "c1" },
    { position: 3, fate: "rewound" },
    { position: 5, fate: "compacted", cause: "c1" },
    { position: 6 },
    { position: 7, fate: "compacted", cause: "c1" },
    { position: 8, fate: "compacted", cause: "c2" },
  ];
  const said = entriesOf(windowOf(places)).flatMap((entry) =>
    entry.kind === "message" && entry.newFate === "compacted" ? [entry.position] : [],
  );
  expect(said).toEqual([1, 8]);
});

describe("a stretch that the conversation left", () => {
  const places: Place[] = [
    { position: 1, message: { role: "assistant" } },
    { position: 2, fate: "rewound", cause: "m5", message: { parts: [{ type: "text", text: "Green" }] } },
    { position: 3, fate: "rewound", cause: "m5", message: { role: "assistant" } },
    { position: 5 },
    { position: 6, fate: "retracted" },
    { position: 7, fate: "sidecar" },
  ];
  const events: HistoryEvent[] = [{ type: "interrupt", id: "i", position: 2 }];

  it("is one line with what was asked in it, and follows when it is opened", () => {
    const folded = entriesOf(windowOf(places, events), () => false);
    expect(kinds(folded)).toEqual(["m1", "branch", "m5", "branch", "m7"]);
    expect(folded[1]).toMatchObject({ messages: 2, cause: "m5", fate: "rewound", position: 2, last: 3 });
    expect(folded[1]?.kind === "branch" && folded[1].prompt?.message.id).toBe("m2");
    const open = entriesOf(windowOf(places, events));
    expect(kinds(open)).toEqual(["m1", "branch", "m2", "event", "m3", "m5", "branch", "m6", "m7"]);
    expect(open.filter((entry) => entry.inBranch).map((entry) => entry.position)).toEqual([2, 2, 3, 6]);
  });

  it("is known by what it was left for, however much of it is loaded", () => {
    const whole = entriesOf(windowOf(places), () => false);
    const part = entriesOf(windowOf(places.slice(2)), () => false);
    const ids = [whole, part].map((entries) => entries.find((entry) => entry.kind === "branch")?.id);
    expect(ids[0]).toBe(ids[1]);
  });
});

it("folds what the harness put in, with the records between, and keeps the order", () => {
  const injected = { role: "developer", origin: "harness" } as const;
  const places: Place[] = [
    { position: 1, message: { role: "system" } },
    { position: 2, message: injected },
    { position: 4, message: injected },
    { position: 5, message: { role: "user" } },
    { position: 6, message: injected },
    { position: 8, message: { role: "developer", origin: "command_output" } },
  ];
  const entries = entriesOf(windowOf(places, [record("a", 3), record("b", 9)]));
  expect(kinds(entries)).toEqual(["background", "m5", "m6", "m8", "records"]);
  expect(entries[0]?.kind === "background" && entries[0].items.map((item) => item.position)).toEqual([
    1, 2, 3, 4,
  ]);
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
