/** What each hour, day, week, month or block used, and how it is divided, if it is. */

import type { UsageBy, UsageReport, UsageTotals } from "@/api/types";
import { BarChart } from "@/charts/bar-chart";
import { everyPeriod, type PeriodKind, periodLabel } from "@/charts/calendar";
import { type Chart, toPeriods, toSeries, type Value } from "@/charts/series";
import { labelsOfRows } from "@/filters/project-label";
import type { Measure } from "./measures";
import { BY, type Listed, listOf } from "./names";

const TIMES: UsageBy[] = ["hour", "day", "week", "month", "block"];

export function isTime(by: UsageBy | null): by is PeriodKind {
  return by !== null && TIMES.includes(by);
}

export function TimeChart({
  report,
  measure,
  filters,
}: {
  report: UsageReport;
  measure: Measure;
  filters: Listed;
}) {
  const chart = chartOf(report, measure, filters);
  if (!chart || report.rows.every(({ totals }) => measure.of(totals) === null)) return null;
  const [time, thing] = isTime(report.by) ? [report.by, report.then_by] : [report.then_by, report.by];
  const division = thing && !isTime(thing) ? ` and ${BY[thing].toLowerCase()}` : "";
  return <BarChart title={`${measure.label} by ${time}${division}`} chart={chart} />;
}

/** One name for the series of a report that is not divided. */
const WHOLE = "";

/** Periods with what each thing used in them; null for a report without periods. */
export function chartOf(report: UsageReport, measure: Measure, filters: Listed): Chart | null {
  const { by, then_by, rows } = report;
  const kind = isTime(by) ? by : isTime(then_by) ? then_by : null;
  if (!kind) return null;
  const thing = kind === by ? then_by : by;
  const things = then_by === null ? [] : kind === by ? rows.flatMap(({ parts }) => parts) : rows;
  const projects = thing === "project" ? labelsOfRows(things) : null;
  const values = rows.flatMap((row): Value[] => {
    const value = (period: string | null, name: string | null, label: string | null, totals: UsageTotals) =>
      period === null
        ? []
        : [
            {
              period,
              name,
              label: projects?.get(name) ?? label ?? name ?? "",
              value: measure.of(totals),
            },
          ];
    if (then_by === null) return value(row.name, WHOLE, null, row.totals);
    return row.parts.flatMap((part) =>
      kind === by
        ? value(row.name, part.name, part.label, part.totals)
        : value(part.name, row.name, row.label, part.totals),
    );
  });
  const { series, keyOf } = toSeries(values, {
    all: (name) => (thing && name ? listOf(thing, name, filters) : null),
    at: (name, period) => listOf(kind, period, thing && name ? { ...filters, [thing]: name } : filters),
  });
  const names = everyPeriod(
    values.map(({ period }) => period),
    kind,
  );
  return {
    series,
    periods: toPeriods(names, (name) => periodLabel(name, kind), values, keyOf),
    format: measure.format,
    formatTick: measure.formatTick,
  };
}
