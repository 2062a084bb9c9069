/** What happened between messages: drawn where it happened. */

import type { HistoryEvent } from "@/api/types";
import { Icon, type IconName } from "@/design/icon";
import { formatCompact, plural } from "@/format/numbers";
import { formatExact } from "@/format/time";
import { useDisclosure, useOwnDisclosure } from "@/session/disclosure";
import type { EventEntry, LoudEvent, QuietEvent, RecordsEntry } from "@/session/entries";
import { EventRecords, rawId } from "@/session/message/raw-records";
import { JumpLink } from "@/session/session-context";
import { ToolOutput } from "@/session/tool/tool-output";
import "./timeline.css";

export function EventView({ entry }: { entry: EventEntry }) {
  const { event } = entry;
  if (event.type === "tool-result") return <OrphanResult id={entry.key} event={event} />;
  return <ToldEvent entry={entry} event={event} />;
}

function ToldEvent({ entry, event }: { entry: EventEntry; event: Described }) {
  const { icon, text, tone } = describe(event);
  const link = linkOf(event);
  const [raw] = useOwnDisclosure(rawId(entry.key));
  return (
    <div data-event={entry.key}>
      <p className={`event event-${tone}`} title={event.created_at && formatExact(event.created_at)}>
        <Icon name={icon} size={14} />
        <span>{text}</span>
        {link && <JumpLink to={{ id: link.id }}>{link.text}</JumpLink>}
      </p>
      {raw && <EventRecords position={entry.position} id={event.id} />}
    </div>
  );
}

/** The message an event links to: the summary that replaced the context, or the target of a rewind. */
function linkOf(event: Described): { id: string; text: string } | null {
  if (event.type === "compaction" && event.summary_message_id) {
    return { id: event.summary_message_id, text: "The summary" };
  }
  return event.type === "rewind" && event.to_message_id
    ? { id: event.to_message_id, text: "Go to that point" }
    : null;
}

type Described = Exclude<LoudEvent, { type: "message" | "tool-result" }>;

function describe(event: Described): { icon: IconName; text: string; tone: "line" | "muted" | "error" } {
  switch (event.type) {
    case "compaction":
      return { icon: "compact", text: describeCompaction(event.trigger, event), tone: "line" };
    case "rewind":
      return { icon: "rewind", text: "Rewound to an earlier point", tone: "line" };
    case "interrupt":
      return { icon: "stop", text: INTERRUPTS[event.during ?? "unknown"], tone: "muted" };
    case "error":
      return {
        icon: "cross",
        text: [event.status, event.kind, event.error_text].filter(Boolean).join(" · "),
        tone: "error",
      };
  }
}

const INTERRUPTS = {
  answer: "Interrupted by the user",
  tool: "Interrupted by the user while a tool ran",
  unknown: "Interrupted by the user",
};

function describeCompaction(
  trigger: string | undefined,
  tokens: { tokens_before?: number; tokens_after?: number },
) {
  const sizes = [tokens.tokens_before, tokens.tokens_after]
    .flatMap((count) => count ?? [])
    .map(formatCompact);
  const how = trigger ? `Context compacted (${trigger})` : "Context compacted";
  if (sizes.length === 0) return how;
  return `${how} · ${tokens.tokens_before && !tokens.tokens_after ? "from " : ""}${sizes.join(" → ")} tokens`;
}

function OrphanResult({ id, event }: { id: string; event: Extract<HistoryEvent, { type: "tool-result" }> }) {
  const [open, toggle] = useDisclosure(id);
  const call = {
    type: "tool-call" as const,
    tool_call_id: event.tool_call_id,
    tool_name: event.tool_name ?? "",
  };
  return (
    <div className="records">
      <button type="button" className="fold" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name="tool" />
        <span>{event.duplicate ? "Duplicate result" : "Result without a call"}</span>
        <span className="fold-preview">{event.tool_name ?? event.tool_call_id}</span>
      </button>
      {open && <ToolOutput result={event.result} call={call} />}
    </div>
  );
}

/** Records outside the conversation, folded to one quiet line. */
export function RecordsView({ entry }: { entry: RecordsEntry }) {
  const [open, toggle] = useOwnDisclosure(entry.key);
  return (
    <div className="records">
      <button type="button" className="fold fold-faint" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name="record" />
        <span>{plural(entry.events.length, "record")}</span>
        <span className="fold-preview">{kindsOf(entry.events)}</span>
      </button>
      {open && (
        <ol className="records-list">
          {entry.events.map((event) => (
            <li key={event.id}>
              <Record event={event} />
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

function Record({ event }: { event: QuietEvent }) {
  const unknown = event.type === "record" && event.known === false;
  return (
    <>
      <p className="records-kind">
        {event.kind}
        {unknown && " · unknown to this version"}
        {event.created_at && <span className="records-time">{formatExact(event.created_at)}</span>}
      </p>
      <EventRecords position={event.position ?? 0} id={event.id} />
    </>
  );
}

function kindsOf(events: QuietEvent[]): string {
  const counts = new Map<string, number>();
  for (const { kind } of events) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => (count > 1 ? `${kind} ×${count}` : kind)).join(", ");
}
