/** What became of a tool call, in words. Aborted is not failed is not denied. */

import type { ResultStatus, ToolCallPart, ToolState } from "@/api/types";
import type { IconName } from "@/design/icon";
import { spanOf } from "@/format/time";

export type Tone = "quiet" | "error" | "warning" | "muted" | "waiting";

export interface StateLabel {
  text: string;
  icon: IconName;
  tone: Tone;
}

const LABELS: Record<ToolState, StateLabel> = {
  "input-streaming": { text: "unfinished call", icon: "clock", tone: "waiting" },
  "input-available": { text: "no result", icon: "clock", tone: "waiting" },
  "approval-requested": { text: "waiting for approval", icon: "hand", tone: "warning" },
  "approval-responded": { text: "answered, no result", icon: "clock", tone: "waiting" },
  "output-available": { text: "done", icon: "check", tone: "quiet" },
  "output-error": { text: "error", icon: "cross", tone: "error" },
  "output-denied": { text: "denied", icon: "hand", tone: "warning" },
  aborted: { text: "aborted", icon: "stop", tone: "muted" },
};

const STATUS_STATES: Record<ResultStatus, ToolState> = {
  success: "output-available",
  error: "output-error",
  denied: "output-denied",
  aborted: "aborted",
};

const RUNNING: StateLabel = { text: "running", icon: "clock", tone: "waiting" };

/** `running`: the call is known to run just now. */
export function stateLabel(call: ToolCallPart, running = false): StateLabel {
  if (running) return RUNNING;
  const label = LABELS[call.state ?? "input-available"];
  const exit = call.results?.at(-1)?.exit_code;
  if (exit === undefined || exit === 0) return label;
  if (label.tone === "error") return { ...label, text: `exit ${exit}` };
  // Some agents call a command done, whatever it said at its end.
  return label.tone === "quiet" ? { ...label, text: `exit ${exit}`, icon: "info", tone: "warning" } : label;
}

export function statusLabel(status: ResultStatus): StateLabel {
  return LABELS[STATUS_STATES[status]];
}

/** Milliseconds the call took, as the agent measured it, else from call to last result; null when unknown. */
export function durationOf(call: ToolCallPart, calledAt: string | undefined): number | null {
  const last = call.results?.at(-1);
  return last?.duration_ms ?? spanOf(call.started_at ?? calledAt, last?.completed_at);
}
