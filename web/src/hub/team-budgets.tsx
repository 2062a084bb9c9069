/** Budgets of the team, of projects and of people: what the running month has cost, and a form for owners and admins. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { getJson } from "@/api/client";
import type { Items } from "@/api/types";
import { useItems } from "@/api/use-items";
import { describeFailure, Problem } from "@/design/problem";
import { BudgetMeter } from "@/usage/budgets";
import { EndButton } from "./hub-list";
import { labelsOf } from "./names";
import { BUDGETS, MEMBERS } from "./paths";
import type { BudgetBody, Member, TeamBudget } from "./schema";
import { useHubChange } from "./use-hub";

type Scope = TeamBudget["scope"];

const SCOPES: { value: Scope; label: string }[] = [
  { value: "team", label: "The team" },
  { value: "project", label: "A project" },
  { value: "person", label: "A person" },
];

interface TeamBudgetsProps {
  projects: string[];
  smallestGroup: number;
  /** Id of who looks. */
  self: string | undefined;
}

export function TeamBudgets({ projects, smallestGroup, self }: TeamBudgetsProps) {
  const answer = useQuery({
    queryKey: [BUDGETS],
    queryFn: ({ signal }) => getJson<Items<TeamBudget>>(BUDGETS, {}, signal),
  });
  const budgets = answer.data?.items ?? [];
  const people = labelsOf(useItems<Member>(MEMBERS).map(({ user }) => user));
  const [first] = budgets;
  return (
    <section className="team-section" aria-label="Budgets">
      <h2>Budgets{first && ` of ${first.month}`}</h2>
      {answer.isError && <Problem error={answer.error} what="The list of budgets" />}
      {answer.data && budgets.length === 0 && <p className="team-note">None yet.</p>}
      <ul className="budgets">
        {budgets.map((budget) => (
          <BudgetMeter
            key={budget.id}
            id={budget.id}
            label={labelOf(budget, people, self)}
            limit={budget.limit}
            spent={budget.spent ?? null}
            unpriced_calls={budget.unpriced_calls ?? 0}
            note={
              budget.unpriced_calls == null
                ? `Fewer than ${smallestGroup} people: not shown.`
                : "What was spent is unknown."
            }
          >
            <EndButton
              label="Remove"
              question={`Have no budget of ${labelOf(budget, people, self)} any more?`}
              path={`${BUDGETS}/${budget.id}`}
            />
          </BudgetMeter>
        ))}
      </ul>
      <BudgetForm projects={projects} people={people} />
      <ul className="usage-contents">
        <li>Costs are those of list prices, also where somebody has a subscription: this is no invoice.</li>
        <li>Calls of unknown price are in no budget; a ≥ says that there are some.</li>
        <li>Months are those of UTC. A budget warns from 80 % on, and stops nobody.</li>
      </ul>
    </section>
  );
}

function labelOf(
  { scope, subject }: TeamBudget,
  people: Map<string, string>,
  self: string | undefined,
): string {
  if (scope === "team" || subject === null) return "The team";
  if (scope === "project") return subject;
  const name = people.get(subject) ?? subject;
  return subject === self ? `${name} (you)` : name;
}

function BudgetForm({ projects, people }: { projects: string[]; people: Map<string, string> }) {
  const change = useHubChange();
  const [scope, setScope] = useState<Scope>("team");
  return (
    <form
      className="team-form"
      aria-label="A budget"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        const body: BudgetBody = { scope, limit: Number(form.get("limit")) };
        if (scope !== "team") body.subject = String(form.get("subject")).trim();
        change.mutate({ method: "POST", path: BUDGETS, body });
      }}
    >
      <label>
        A budget of
        <select className="field" value={scope} onChange={(event) => setScope(event.target.value as Scope)}>
          {SCOPES.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {scope === "project" && (
        <label>
          Its path
          <input className="field" name="subject" required list="budget-projects" />
          <datalist id="budget-projects">
            {projects.map((path) => (
              <option key={path} value={path} />
            ))}
          </datalist>
        </label>
      )}
      {scope === "person" && (
        <label>
          Who
          <select className="field" name="subject" required>
            {[...people].map(([id, name]) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <label>
        US dollars a month
        <input className="field" name="limit" type="number" min={0.01} max={1e9} step={0.01} required />
      </label>
      <button type="submit" className="button" disabled={change.isPending}>
        Set the budget
      </button>
      {change.error && (
        <p role="alert" className="team-problem">
          {describeFailure(change.error)}
        </p>
      )}
    </form>
  );
}
