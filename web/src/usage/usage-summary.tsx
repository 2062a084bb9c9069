/** The totals in large, and in words what they contain and what they lack. */

import type { ReactNode } from "react";
import type { UsageTotals } from "@/api/types";
import { formatCompact, formatCost, formatTotalCost, plural } from "@/format/numbers";

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
      <Figure label="Tokens sent" value={formatCompact(sent)} note={cached} />
      <Figure
        label="Tokens answered"
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

export function UsageContents({ totals }: { totals: UsageTotals }) {
  return (
    <ul className="usage-contents">
      <Item>
        Every model call is counted once, subagents included; what a fork or a resumed session copied is
        counted where it was first made.
      </Item>
      <Item>All tokens is the sum of the columns from input on: none of them contains another.</Item>
      {totals.unknown_calls > 0 && (
        <Item>{plural(totals.unknown_calls, "call")} without token counts in the log: in no sum.</Item>
      )}
      {totals.unpriced_calls > 0 && (
        <Item>
          {plural(totals.unpriced_calls, "call")} of a model without a known price: tokens yes, cost no.
        </Item>
      )}
      {totals.lower_bound_calls > 0 && (
        <Item>
          {plural(totals.lower_bound_calls, "call")} whose log states the output only as “at least”.
        </Item>
      )}
      {totals.reported_cost !== null && (
        <Item>
          The agents themselves reported {formatCost(totals.reported_cost)} for some of these calls; it is not
          added.
        </Item>
      )}
    </ul>
  );
}

function Item({ children }: { children: ReactNode }) {
  return <li>{children}</li>;
}
