/** What a running day, week or month has cost of a budget, as a meter that warns. */

import type { ReactNode } from "react";
import type { UsageBudget } from "@/api/types";
import { Icon } from "@/design/icon";
import { formatCost, formatShare, formatTotalCost } from "@/format/numbers";

/** The share of a budget from which the page warns, as the command does. */
const NEARLY = 0.8;

/** The budgets that the user has set. */
export function Budgets({ budgets }: { budgets: UsageBudget[] }) {
  if (budgets.length === 0) return null;
  return (
    <ul className="budgets" aria-label="Budgets">
      {budgets.map(({ period, ...budget }) => (
        <BudgetMeter key={period} id={period} label={`Budget of the ${period}`} {...budget} />
      ))}
    </ul>
  );
}

interface BudgetMeterProps {
  id: string;
  label: string;
  limit: number;
  /** Null where it is unknown; a note says why. */
  spent: number | null;
  unpriced_calls: number;
  note?: string;
  /** What follows the figures. */
  children?: ReactNode;
}

export function BudgetMeter({ id, label, limit, spent, unpriced_calls, note, children }: BudgetMeterProps) {
  const state =
    spent === null ? "" : spent > limit ? "exceeded" : spent >= NEARLY * limit ? "nearly spent" : "";
  return (
    <li className={state ? "budget budget-warning" : "budget"}>
      <span id={`budget-${id}`} className="budget-label">
        {state && <Icon name="flag" size={14} />} {label}
        {state && `: ${state}`}
      </span>
      {spent !== null && (
        <meter
          aria-labelledby={`budget-${id}`}
          min={0}
          max={limit}
          value={Math.min(spent, limit)}
          high={NEARLY * limit}
        />
      )}
      <span className="budget-figure">
        {spent === null
          ? `${formatCost(limit)} a month. ${note}`
          : `${formatTotalCost(spent, unpriced_calls)} of ${formatCost(limit)} (${formatShare(spent / limit)})`}
      </span>
      {children}
    </li>
  );
}
