/** What the running day, week and month have cost of the budgets that the user has set. */

import type { UsageBudget } from "@/api/types";
import { Icon } from "@/design/icon";
import { formatCost, formatShare, formatTotalCost } from "@/format/numbers";

/** The share of a budget from which the page warns, as the command does. */
const NEARLY = 0.8;

export function Budgets({ budgets }: { budgets: UsageBudget[] }) {
  if (budgets.length === 0) return null;
  return (
    <ul className="budgets" aria-label="Budgets">
      {budgets.map((budget) => (
        <Budget key={budget.period} budget={budget} />
      ))}
    </ul>
  );
}

function Budget({ budget: { period, limit, spent, unpriced_calls, is_exceeded } }: { budget: UsageBudget }) {
  const share = spent / limit;
  const state = is_exceeded ? "exceeded" : share >= NEARLY ? "nearly spent" : "";
  const id = `budget-${period}`;
  return (
    <li className={state ? "budget budget-warning" : "budget"}>
      <span id={id}>
        {state && <Icon name="flag" size={14} />} Budget of the {period}
        {state && `: ${state}`}
      </span>
      <meter aria-labelledby={id} min={0} max={limit} value={Math.min(spent, limit)} high={NEARLY * limit} />
      <span className="budget-figure">
        {formatTotalCost(spent, unpriced_calls)} of {formatCost(limit)} ({formatShare(share)})
      </span>
    </li>
  );
}
