/** What a session is doing at this moment: worked out from the server's state, and shown as a dot, a word and the open call. */

import type { SessionItem, SessionState, StateName } from "@/api/types";
import { formatClock, formatDate } from "@/format/time";
import "./state-badge.css";

interface StateBadgeProps {
  session: SessionItem;
  now: Date;
  /** Also where it is no news. */
  always?: boolean;
}

export function StateBadge({ session: { state }, now, always = false }: StateBadgeProps) {
  const label = state && (stateLabel(state, now) ?? (always ? pastState(state, now) : null));
  if (!label) return null;
  const { doing } = state;
  return (
    <span className="state-badge" data-state={stateAt(state, now)} title={evidenceOf(state)}>
      <span className="state-dot" />
      {label}
      {doing && (
        <span className="state-doing">
          · {doing.tool_name} {doing.summary}
        </span>
      )}
    </span>
  );
}

/** A running session without new records is quiet from the moment that the server named. */
export function stateAt(state: SessionState | undefined, now: Date): StateName | null {
  if (!state) return null;
  const isOver = state.state === "running" && state.quiet_at !== null && new Date(state.quiet_at) <= now;
  return isOver ? "quiet" : state.state;
}

/** Whether the session is running or waiting for the user. */
export function isActive(state: SessionState | undefined, now: Date): boolean {
  const name = stateAt(state, now);
  return name === "running" || name === "waiting";
}

const HOUR = 3_600_000;
const NEWS = 24 * HOUR;

/** A word for lists; null where it is no news: a session that ended as it should, or long ago. */
export function stateLabel(state: SessionState, now: Date): string | null {
  const name = stateAt(state, now);
  const age = state.since ? now.getTime() - new Date(state.since).getTime() : Number.POSITIVE_INFINITY;
  if (name === "running") return "Running";
  if (name === "waiting")
    return state.evidence === "approval" ? "Waiting for permission" : "Waiting for an answer";
  if (age > NEWS) return null;
  if (name === "killed") return state.detail ? `Killed, ${state.detail}` : "Killed";
  if (hasFailed(state)) return "Failed";
  if (name === "quiet" && state.since) return `Idle since ${formatClock(state.since)}`;
  return null;
}

/** Whether the agent logged a failed request in the place of an answer. */
function hasFailed({ evidence, detail }: Pick<SessionState, "evidence" | "detail">): boolean {
  return evidence === "answer" && detail === "error";
}

/** The same where it is no news. */
export function pastState({ state, evidence, detail, since }: SessionState, now: Date): string {
  const day = since ? ` ${formatDate(new Date(since), now)}` : "";
  if (state === "done")
    return hasFailed({ evidence, detail }) ? "Failed" : evidence === "interrupt" ? "Stopped" : "Done";
  return state === "killed" ? `Killed${day}` : day ? `Idle since${day}` : "Idle for a long time";
}

const EVIDENCE: Record<string, string> = {
  process: "Its process is running",
  "open-call": "A tool call has no result yet",
  "open-turn": "The last prompt or result has no answer yet",
  approval: "The agent asks for permission",
  question: "The agent asks a question",
  "turn-ended": "The agent recorded the end of the turn",
  answer: "The model finished its answer",
  interrupt: "The user stopped it",
  closed: "The agent has exited",
  nothing: "There is no prompt yet",
  "process-ended": "Its process ended in the middle of a turn",
  silence: "Nothing new in the middle of a turn: it may be thinking, waiting, or gone",
};

/** How that is known, in words. */
export function evidenceOf({ evidence, detail }: SessionState): string {
  if (hasFailed({ evidence, detail })) return "The last request to the model failed";
  const words = EVIDENCE[evidence] ?? evidence;
  return detail ? `${words} (${detail})` : words;
}
