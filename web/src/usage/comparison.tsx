/** Two periods beside each other: what changed, and why the later one cost more or less. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { getJson } from "@/api/client";
import { USAGE_COMPARISON } from "@/api/paths";
import type {
  ComparedPeriod,
  ComparedRow,
  CostCause,
  UsageBy,
  UsageComparison,
  UsageTotals,
} from "@/api/types";
import { FiguresTable } from "@/charts/figures-table";
import { Loading, Refreshed } from "@/design/loading";
import { Problem } from "@/design/problem";
import { projectLabels } from "@/filters/project-label";
import { formatCost, formatCount, formatShare, formatTokens, UNKNOWN } from "@/format/numbers";
import { dayKey, formatDateIn, startOf } from "@/format/time";
import { type Listed, listOf } from "./names";
import { ALL, formatSum, formatSumCost, OUTPUT, sumOf } from "./sums";

/** Days of the period, today among them, if none is chosen. */
const DAYS = 7;

interface ComparisonProps {
  /** Query parameters: the zone, the filters, and the chosen period. */
  parameters: { zone: string; since: string; until: string; agent: string; project: string; model: string };
  filters: Listed;
}

export function Comparison({ parameters, filters }: ComparisonProps) {
  const [now] = useState(() => new Date());
  // Of a period of which only the end is chosen, the days before that.
  const end = parameters.until ? new Date(new Date(parameters.until).getTime() - 1) : now;
  const lately = lastDays(end, parameters.zone === "UTC");
  const since = parameters.since || lately.since;
  const until = parameters.until || lately.until;
  const comparison = useQuery({
    queryKey: ["comparison", parameters, since, until],
    queryFn: ({ signal }) =>
      getJson<UsageComparison>(USAGE_COMPARISON, { ...parameters, since, until }, signal),
    placeholderData: (previous) => previous,
  });
  return (
    <>
      <Loading busy={comparison.isPending} />
      {comparison.isError && <Problem error={comparison.error} what="The comparison" asked="This choice" />}
      {comparison.data && !comparison.isError && (
        <Refreshed busy={comparison.isPlaceholderData}>
          {!parameters.since && !parameters.until && (
            <p className="usage-note usage-period">
              The last {DAYS} days, today included, beside the {DAYS} days before them.
            </p>
          )}
          <Periods comparison={comparison.data} zone={parameters.zone} now={now} filters={filters} />
        </Refreshed>
      )}
    </>
  );
}

interface PeriodsProps {
  comparison: UsageComparison;
  zone: string;
  now: Date;
  filters: Listed;
}

function Periods({ comparison, zone, now, filters }: PeriodsProps) {
  const { earlier, later, causes, models, projects, missing, cost_change } = comparison;
  return (
    <>
      <section className="usage-causes" aria-label="Both periods">
        <FiguresTable
          columns={["Figure", ...[earlier, later].map((period) => span(period, zone, now)), "Change"]}
          rows={figures(earlier, later)}
        />
      </section>
      {cost_change === null && (
        <p className="usage-note usage-period">
          Why the cost changed is not known: in one of the periods no call has a known price.
        </p>
      )}
      {causes.length > 0 && <Causes comparison={comparison} />}
      <Rows title="Model" by="model" rows={models} filters={filters} />
      <Rows title="Project" by="project" rows={projects} filters={filters} />
      <ul className="usage-contents">
        {missing.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </>
  );
}

/** The last whole days, today among them: today counts as a whole one, although its rest is still to come. */
export function lastDays(now: Date, isUtc: boolean): { since: string; until: string } {
  const today = isUtc ? now.toISOString().slice(0, "2026-11-20".length) : dayKey(now);
  const [first, next] = [daysFrom(today, 1 - DAYS), daysFrom(today, 1)];
  return isUtc ? { since: first, until: next } : { since: startOf(first), until: startOf(next) };
}

function daysFrom(day: string, distance: number): string {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return dayKey(new Date(year, month - 1, date + distance));
}

/** "14 Nov to 20 Nov" in the zone of the days: the end is the last day that is in it. */
export function span({ since, until }: Pick<ComparedPeriod, "since" | "until">, zone: string, now: Date) {
  const last = new Date(new Date(until).getTime() - 1);
  return `${formatDateIn(zone, new Date(since), now)} to ${formatDateIn(zone, last, now)}`;
}

function figures(earlier: ComparedPeriod, later: ComparedPeriod) {
  const rows: [
    name: string,
    of: (period: ComparedPeriod) => number | null,
    shown: (period: ComparedPeriod) => string,
  ][] = [
    ["Sessions", ({ sessions }) => sessions, ({ sessions }) => formatCount(sessions)],
    ["Model calls", ({ totals }) => totals.calls, ({ totals }) => formatCount(totals.calls)],
    ["All tokens", ({ totals }) => sumOf(totals, ALL), ({ totals }) => formatSum(totals, ALL)],
    ["Output tokens", ({ totals }) => sumOf(totals, OUTPUT), ({ totals }) => formatSum(totals, OUTPUT)],
    ["Cost", ({ totals }) => totals.cost, ({ totals }) => formatSumCost(totals)],
  ];
  return rows.map(([name, of, shown]) => ({
    key: name,
    cells: [
      name,
      shown(earlier),
      shown(later),
      percent(of(earlier), of(later), name === "Cost" ? undefined : UNKNOWN),
    ],
  }));
}

/** +50 % · −67 % · −99.6 % · < −99.9 %, as the command line writes them: what is left is not nothing. */
export function percent(before: number | null, after: number | null, unknown = "no known price"): string {
  if (before === null || after === null) return unknown;
  if (before === 0) return after === 0 ? "0 %" : "new";
  const exact = (100 * (after - before)) / before;
  if (after !== 0 && exact < -99.9) return "< −99.9 %";
  const change = Number(exact.toFixed(after !== 0 && exact <= -99.5 ? 1 : 0));
  return `${signOf(change)}${formatCount(Math.abs(change))} %`;
}

/** "+$1.20" · "−$0.31" · "$0" */
export function signed(dollars: number | null): string {
  return dollars === null ? UNKNOWN : `${signOf(dollars)}${formatCost(Math.abs(dollars))}`;
}

function signOf(change: number): string {
  return change < 0 ? "−" : change > 0 ? "+" : "";
}

const CAUSES: Record<CostCause["cause"], { name: string; measure?: (value: number) => string }> = {
  sessions: { name: "Sessions with a known price", measure: formatCount },
  calls_per_session: { name: "Model calls per session", measure: oneDigit },
  models: { name: "Other models" },
  tokens_per_call: { name: "Tokens per call", measure: (value) => formatTokens(Math.round(value)) },
  output_share: { name: "Output among the tokens", measure: formatShare },
  cache_share: { name: "Prompts read from the cache", measure: formatShare },
  price: { name: "Price of a token" },
};

function oneDigit(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 1 });
}

function Causes({ comparison: { causes, cost_change, earlier, later } }: { comparison: UsageComparison }) {
  return (
    <section className="usage-causes" aria-labelledby="usage-causes">
      <h2 id="usage-causes">Why the cost changed by {signed(cost_change)}</h2>
      {unpricedOf(earlier.totals) + unpricedOf(later.totals) > 0 && (
        <p className="usage-note">Only calls with a known price count here.</p>
      )}
      <FiguresTable
        columns={["Cause", "Change", "Before", "After"]}
        rows={causeRows(causes, earlier.totals, later.totals)}
      />
    </section>
  );
}

/** One row for each cause, and one for what no cause contains. */
export function causeRows(causes: CostCause[], earlier: UsageTotals, later: UsageTotals) {
  const rows = causes.map(({ cause, earlier, later, cost_change }) => {
    const { name, measure } = CAUSES[cause];
    const shown = (value: number | null) => (!measure ? "" : value === null ? "–" : measure(value));
    return { key: cause as string, cells: [name, signed(cost_change), shown(earlier), shown(later)] };
  });
  const [before, after] = [unpricedOf(earlier), unpricedOf(later)];
  if (before + after === 0) return rows;
  const unpriced = ["Calls without a known price", "not in it", formatCount(before), formatCount(after)];
  return [...rows, { key: "unpriced", cells: unpriced }];
}

function unpricedOf({ unpriced_calls, unknown_calls }: UsageTotals): number {
  return unpriced_calls + unknown_calls;
}

interface RowsProps {
  title: string;
  by: UsageBy;
  rows: ComparedRow[];
  filters: Listed;
}

function Rows({ title, by, rows, filters }: RowsProps) {
  if (rows.length === 0) return null;
  const labels = projectLabels(
    rows.flatMap(({ name, label }) => (name === null ? [] : [{ path: name, name: label ?? name }])),
  );
  return (
    <section className="usage-causes" aria-labelledby={`usage-by-${by}`}>
      <h2 id={`usage-by-${by}`}>{title}s</h2>
      <FiguresTable
        columns={[title, "Calls before", "Calls", "Cost before", "Cost", "Change"]}
        rows={rows.map(({ name, earlier, later, cost_change }) => ({
          key: name ?? "",
          cells: [
            name === null ? (
              <span key="name" className="unknown">
                {UNKNOWN}
              </span>
            ) : (
              <Link key="name" href={listOf(by, name, filters)} title={name}>
                {labels.get(name) ?? name}
              </Link>
            ),
            formatCount(earlier.calls),
            formatCount(later.calls),
            formatSumCost(earlier),
            formatSumCost(later),
            signed(cost_change),
          ],
        }))}
      />
    </section>
  );
}
