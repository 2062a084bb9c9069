/** Duration, tokens and cost of a session. An unknown figure is shown as unknown, and a sum without some calls as a lower bound. */

import type { Session, SessionItem } from "@/api/types";
import { formatTokens, formatTotalCost, plural } from "@/format/numbers";
import { formatDuration, spanOf } from "@/format/time";
import { describeUsage, totalTokens } from "@/format/token-buckets";

const SHARED = "No model calls of its own: shared answers count in the session they come from";

const WHOLE = "Counted for the session as a whole; its log has no tokens of single calls";

const ESTIMATED = "Its agent estimates the tokens";

const ACTIVE = "Time between messages, without gaps of more than 10 minutes";

/** How long it was active, and of how long from its first record to its last where that is much longer. */
export function Duration({ session }: { session: SessionItem }) {
  // A log that has one time for a whole run does not say how long it took.
  const span = spanOf(session.created_at, session.updated_at) || null;
  const active = session.active_ms ?? null;
  if (active === null) return span === null ? null : formatDuration(span);
  const whole = span !== null && span - active >= MUCH ? formatDuration(span) : null;
  return (
    <span title={ACTIVE}>
      {formatDuration(active)}
      {whole && <span className="session-span"> of {whole}</span>}
    </span>
  );
}

/** Milliseconds: less makes no difference to what one expects of a session. */
const MUCH = 60_000;

/** Whether it has calls, or totals in their place. */
function isUsed(session: Session): boolean {
  return Boolean(session.usage?.calls) || (session.totals?.length ?? 0) > 0;
}

/** Why a session has no usage. */
function noUsage(session: Session): string {
  return session.relationships?.some(({ kind }) => kind !== "subagent") ? SHARED : "No model calls";
}

export function Tokens({ session }: { session: Session }) {
  if (!isUsed(session)) return <span title={noUsage(session)}>–</span>;
  const usage = session.usage?.usage ?? {};
  const unknown = session.usage?.unknown_calls ?? 0;
  const atLeast = unknown > 0 || usage.exactness === "lower_bound";
  const about = usage.exactness === "estimated" && !atLeast;
  const total = totalTokens(usage);
  const title = [
    describeUsage(usage),
    usage.exactness === "estimated" && ((session.totals?.length ?? 0) > 0 ? WHOLE : ESTIMATED),
    unknown > 0 && `${plural(unknown, "call")} without a count`,
  ]
    .filter(Boolean)
    .join(" · ");
  return (
    <span title={title || undefined} className={total === null ? "unknown" : undefined}>
      {total !== null && atLeast && "≥ "}
      {total !== null && about && "≈ "}
      {formatTokens(total)}
    </span>
  );
}

/** A session, and what a list also knows of it. */
type Priced = Session & Partial<Pick<SessionItem, "cost_with_subagents" | "unpriced_with_subagents">>;

export function Cost({ session }: { session: Priced }) {
  if (!isUsed(session)) {
    const reason = noUsage(session);
    return <span title={reason}>{reason === SHARED ? "–" : "$0"}</span>;
  }
  const unpriced = (session.unpriced_calls ?? 0) + (session.usage?.unknown_calls ?? 0);
  const dollars = session.cost ? Number(session.cost.amount) : null;
  const reported = dollars === null ? session.reported_cost : null;
  if (reported) {
    return (
      <span title={`As reported by the agent; no price is known${ofModels(session)}`}>
        {formatTotalCost(Number(reported.amount), 0)} reported
      </span>
    );
  }
  const reasons = [
    unpriced > 0 && `${plural(unpriced, "call")} without a known price${ofModels(session)}`,
    costOfSubagents(session),
  ].filter((reason) => typeof reason === "string");
  return (
    <span title={reasons.join("\n") || undefined} className={dollars === null ? "unknown" : undefined}>
      {dollars === null
        ? "cost unknown"
        : formatTotalCost(dollars, unpriced, session.usage?.usage?.exactness)}
    </span>
  );
}

/** A list shows the cost of each session alone, also where others did a part of its work. */
function costOfSubagents(session: Priced): string | null {
  const total = costWithSubagents(session);
  return total ? `without its subagents; ${total} with them` : null;
}

/** What a session and its subagents cost, at most as exact as the session itself. */
function costWithSubagents({ cost_with_subagents: total, unpriced_with_subagents: unpriced, usage }: Priced) {
  return total ? formatTotalCost(Number(total.amount), unpriced ?? 0, usage?.usage?.exactness) : null;
}

/** What is not in the cost of the session itself: its subagents, or what it shares with another session. */
export function CostBesides({ session }: { session: SessionItem }) {
  const total = costWithSubagents(session);
  if (total) return ` (${total} with subagents)`;
  return !isUsed(session) && noUsage(session) === SHARED ? " (shared answers count in the original)" : null;
}

function ofModels(session: Session): string {
  return session.models?.length ? ` (${session.models.join(", ")})` : "";
}
