/** The totals in large, and in words what they contain and what they lack. */

import type { UsageReport, UsageTotals } from "@/api/types";
import { formatCompact, formatTotalCost } from "@/format/numbers";

export function UsageSummary({ totals }: { totals: UsageTotals }) {
  const sent = totals.tokens - totals.output - totals.reasoning;
  const cached = sent > 0 ? `${Math.round((100 * totals.cache_read) / sent)} % from cache` : "";
  return (
    <dl className="usage-summary">
      <Figure
        label="Cost"
        value={formatTotalCost(totals.cost, totals.unpriced_calls + totals.unknown_calls)}
        note="at list prices"
      />
      <Figure label="Input tokens" value={formatCompact(sent)} note={cached} />
      <Figure
        label="Output tokens"
        value={formatCompact(totals.output + totals.reasoning)}
        note={thinking(totals)}
      />
      <Figure label="Model calls" value={formatCompact(totals.calls)} note="" />
    </dl>
  );
}

function thinking(totals: UsageTotals): string {
  return totals.reasoning > 0 ? `${formatCompact(totals.reasoning)} of them thinking` : "thinking included";
}

function Figure({ label, value, note }: { label: string; value: string; note: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
      <dd className="usage-note">{note}</dd>
    </div>
  );
}

/** What the sums are made of and what they lack, in the server's words. */
export function UsageContents({ answer: { contains, missing } }: { answer: UsageReport }) {
  return (
    <ul className="usage-contents">
      {[...contains, ...missing].map((sentence) => (
        <li key={sentence}>{sentence}</li>
      ))}
    </ul>
  );
}
