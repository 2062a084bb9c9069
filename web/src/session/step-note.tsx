/** The note in the margin of a message: turn and time of a prompt, tokens and cost of a step. Opens the details. */

import { Icon } from "@/design/icon";
import { formatCost, formatTokens } from "@/format/numbers";
import { formatClock, formatExact } from "@/format/time";
import type { MessageEntry } from "./entry";
import { contextTokens } from "./step-usage";

interface StepNoteProps {
  entry: MessageEntry;
  detailed: boolean;
  onToggle: () => void;
}

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
  // Nothing is what a copy costs, whose original another session pays for.
  return !placement.cost ? tokens : `${tokens} · ${formatCost(placement.cost)}`;
}
