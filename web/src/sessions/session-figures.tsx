/** Tokens and cost of a session. An unknown figure is shown as unknown, and a sum without some calls as a lower bound. */

import type { Session } from "@/api/types";
import { formatTokens, formatTotalCost, plural } from "@/format/numbers";
import { describeUsage, totalTokens } from "@/format/token-buckets";

const COPIES = "No model calls of its own: copied messages are billed in the session they come from";

export function Tokens({ session }: { session: Session }) {
  if (!session.usage?.calls) return <span title={COPIES}>–</span>;
  const usage = session.usage.usage ?? {};
  const unknown = session.usage.unknown_calls ?? 0;
  const atLeast = unknown > 0 || usage.exactness === "lower_bound";
  const total = totalTokens(usage);
  const title = [describeUsage(usage), unknown > 0 && `${plural(unknown, "call")} without a count`]
    .filter(Boolean)
    .join(" · ");
  return (
    <span title={title || undefined} className={total === null ? "unknown" : undefined}>
      {total !== null && atLeast && "≥ "}
      {formatTokens(total)}
    </span>
  );
}

export function Cost({ session }: { session: Session }) {
  if (!session.usage?.calls) return <span title={COPIES}>–</span>;
  const unpriced = (session.unpriced_calls ?? 0) + (session.usage.unknown_calls ?? 0);
  const dollars = session.cost ? Number(session.cost.amount) : null;
  const title = unpriced > 0 ? `${plural(unpriced, "call")} of unknown price not included` : undefined;
  return (
    <span title={title} className={dollars === null ? "unknown" : undefined}>
      {dollars === null ? "cost unknown" : formatTotalCost(dollars, unpriced)}
    </span>
  );
}
