/** The frame of every message: its content, the note beside it, and its details when they are opened. */

import type { ReactNode } from "react";
import type { Message } from "@/api/types";
import { CopyButton } from "@/design/copy-button";
import { Icon } from "@/design/icon";
import { formatCost, formatTokens, UNKNOWN } from "@/format/numbers";
import { formatClock, formatDuration, formatExact, spanOf } from "@/format/time";
import { contextTokens, describeUsage } from "@/format/token-buckets";
import { useOwnDisclosure } from "@/session/disclosure";
import type { MessageEntry } from "@/session/entries";
import { FATES } from "@/session/fates";
import { useLinked, useSessionContext } from "@/session/session-context";
import { CopyMessage, saidIn } from "./copy-as";
import { RawRecords, rawId } from "./raw-records";
import "./message.css";

interface MessageFrameProps {
  entry: MessageEntry;
  className: string;
  label: string;
  children: ReactNode;
}

export function MessageFrame({ entry, className, label, children }: MessageFrameProps) {
  const { message, placement } = entry;
  const { flashing } = useLinked(message.id, null);
  const [detailed, toggleDetails] = useOwnDisclosure(detailsId(message.id));
  return (
    <article
      className={`message ${className}${flashing ? " flash" : ""}`}
      data-fate={placement.fate}
      data-message={message.id}
      aria-label={label}
    >
      <div className="message-body">{children}</div>
      <div className="message-margin">
        <MessageActions message={message} />
        <StepNote entry={entry} detailed={detailed} onToggle={toggleDetails} />
      </div>
      {detailed && <MessageDetails entry={entry} />}
    </article>
  );
}

/** Copies what a message says, and pins it. */
function MessageActions({ message }: { message: Message }) {
  const { pins } = useSessionContext();
  const isPinned = pins?.has(message.id) ?? false;
  return (
    <span className="message-actions">
      <CopyButton className="icon-button" label="Copy this message" text={() => saidIn(message)} />
      {pins && (
        <button
          type="button"
          className="icon-button pin"
          aria-pressed={isPinned}
          aria-label="Pin this message"
          title={isPinned ? "Unpin this message" : "Pin this message"}
          onClick={() => pins.toggle(message.id)}
        >
          <Icon name="pin" size={14} />
        </button>
      )}
    </span>
  );
}

interface StepNoteProps {
  entry: MessageEntry;
  detailed: boolean;
  onToggle: () => void;
}

/**
 * The note in the margin of a message: turn and time of a prompt, tokens and cost of a step. Opens the details.
 */
export function StepNote({ entry, detailed, onToggle }: StepNoteProps) {
  const { message } = entry;
  const moment = message.created_at && formatExact(message.created_at);
  return (
    <button type="button" className="step-note" aria-expanded={detailed} title={moment} onClick={onToggle}>
      <span className="visually-hidden">Message details</span>
      <span className="step-note-text">{noteOf(entry)}</span>
      <Icon name="info" size={14} />
    </button>
  );
}

function noteOf({ message, placement }: MessageEntry): string {
  if (message.role !== "assistant") {
    const clock = message.created_at && formatClock(message.created_at);
    const opens = message.role === "user" && placement.turn != null;
    return [opens && `Turn ${placement.turn}`, clock].filter(Boolean).join(" · ");
  }
  if (!message.usage) return "";
  const atLeast = message.usage.exactness === "lower_bound" ? "≥ " : "";
  const tokens = `${formatTokens(contextTokens(message.usage))} → ${atLeast}${formatTokens(message.usage.output)}`;
  // The cost is 0 for a copy that is billed in another session.
  return !placement.cost ? tokens : `${tokens} · ${formatCost(placement.cost)}`;
}

/** The disclosure id of a message's details. */
export function detailsId(messageId: string): string {
  return `details/${messageId}`;
}

/** Times, model, usage, cost, fate and link of a message, and its records as they were written. */
export function MessageDetails({ entry }: { entry: MessageEntry }) {
  const [raw, toggleRaw] = useOwnDisclosure(rawId(entry.message.id));
  const { pins } = useSessionContext();
  return (
    <aside className="details" aria-label="Message details">
      <dl>
        {factsOf(entry).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <div className="details-actions">
        <button type="button" className="link" aria-expanded={raw} onClick={toggleRaw} title="Key: r">
          {raw ? "Hide raw records" : "Raw records"}
        </button>
        {pins && (
          <button type="button" className="link" onClick={() => pins.toggle(entry.message.id)}>
            {pins.has(entry.message.id) ? "Unpin this message" : "Pin this message"}
          </button>
        )}
        <CopyMessage message={entry.message} />
      </div>
      {raw && <RawRecords messageId={entry.message.id} />}
    </aside>
  );
}

function factsOf({ message, placement }: MessageEntry): [name: string, value: string][] {
  const duration = spanOf(message.created_at, message.completed_at);
  const isStep = message.role === "assistant";
  const facts: [string, string | null | undefined][] = [
    ["When", message.created_at ? formatExact(message.created_at) : UNKNOWN],
    ["Position", placeOf(placement.turn, placement.step)],
    ["Duration", duration === null || duration === 0 ? null : formatDuration(duration)],
    ["Role", message.origin ? `${message.role}, ${message.origin.replaceAll("_", " ")}` : message.role],
    ["Model", isStep ? (message.model ?? UNKNOWN) : null],
    ["Requested model", message.requested_model],
    ["Stop reason", message.raw_stop_reason ?? message.stop_reason],
    ["Tokens", isStep ? (message.usage ? describeUsage(message.usage) : UNKNOWN) : null],
    [
      "Cost",
      isStep ? (placement.cost === 0 ? "billed in another session" : formatCost(placement.cost)) : null,
    ],
    ["Fate", placement.fate === "active" ? null : FATES[placement.fate].text],
    ["Message", message.id],
    ["Request", message.request_id],
  ];
  return facts.flatMap(([name, value]) => (value ? [[name, value]] : []));
}

function placeOf(turn: number | null | undefined, step: number | null | undefined): string | null {
  if (turn == null) return null;
  return step == null ? `turn ${turn}` : `turn ${turn}, step ${step}`;
}
