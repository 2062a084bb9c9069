/** What each project cost in each day or week, and in how many sessions. */

import { useState } from "react";
import type { Insights, ProjectPeriod } from "@/api/types";
import { BarChart } from "@/charts/bar-chart";
import { daysOf, everyPeriod, periodLabel } from "@/charts/calendar";
import { FiguresTable } from "@/charts/figures-table";
import { type Chart, toPeriods, toSeries, type Value } from "@/charts/series";
import { Segments } from "@/design/segments";
import { labelsOfRows } from "@/filters/project-label";
import {
  formatCost,
  formatCount,
  formatRoundCost,
  formatRoundCount,
  formatTotalCost,
  plural,
  UNKNOWN,
} from "@/format/numbers";
import { SessionsLink, sessionsPage, useSessionsPage } from "./links";

type Granularity = Insights["granularity"];

interface ProjectsProps {
  periods: ProjectPeriod[];
  granularity: Granularity;
}

interface Measure {
  value: "cost" | "sessions";
  label: string;
  of: (period: ProjectPeriod) => number | null;
  format: (value: number) => string;
  formatTick: (value: number) => string;
}

export const COST: Measure = {
  value: "cost",
  label: "Cost",
  of: ({ cost }) => cost,
  format: formatCost,
  formatTick: formatRoundCost,
};

const MEASURES: Measure[] = [
  COST,
  {
    value: "sessions",
    label: "Sessions",
    of: ({ sessions }) => sessions,
    format: (count) => plural(count, "session"),
    formatTick: (count) => (Number.isInteger(count) ? formatRoundCount(count) : ""),
  },
];

export function ProjectChart({ periods, granularity }: ProjectsProps) {
  const [value, setValue] = useState(COST.value);
  const measure = MEASURES.find((each) => each.value === value) ?? COST;
  return (
    <>
      <Segments label="Measure" choices={MEASURES} value={value} onChange={setValue} />
      <BarChart
        title={`${measure.label} by project and ${granularity}`}
        chart={chartOf(periods, granularity, measure, useSessionsPage())}
      />
    </>
  );
}

export function chartOf(
  periods: ProjectPeriod[],
  granularity: Granularity,
  measure: Measure,
  page = sessionsPage,
): Chart {
  const labels = labelsOf(periods);
  const values = periods.map((each): Value => {
    const { period, project } = each;
    return { period, name: project, label: labels.get(project) ?? UNKNOWN, value: measure.of(each) };
  });
  const { series, keyOf } = toSeries(values, {
    all: (project) => page({ project }),
    at: (project, period) => page({ project, ...daysOf(period, granularity) }),
  });
  const names = everyPeriod(
    periods.map(({ period }) => period),
    granularity,
  );
  return {
    series,
    periods: toPeriods(names, (name) => periodLabel(name, granularity), values, keyOf),
    format: measure.format,
    formatTick: measure.formatTick,
  };
}

/** What each project is called, told apart where several have one name. */
function labelsOf(periods: ProjectPeriod[]): Map<string | null, string> {
  return labelsOfRows(periods.map(({ project, label }) => ({ name: project, label })));
}

export function ProjectTable({ periods, granularity }: ProjectsProps) {
  const labels = labelsOf(periods);
  return (
    <FiguresTable
      columns={["Period and project", "Sessions", "Model calls", "Cost"]}
      rows={periods.toReversed().map((each) => ({
        key: `${each.period} ${each.project}`,
        cells: [
          <PeriodLink
            key="name"
            each={each}
            label={labels.get(each.project) ?? UNKNOWN}
            granularity={granularity}
          />,
          formatCount(each.sessions),
          formatCount(each.calls),
          formatTotalCost(each.cost, each.unpriced_calls),
        ],
      }))}
    />
  );
}

interface PeriodLinkProps {
  each: ProjectPeriod;
  label: string;
  granularity: Granularity;
}

function PeriodLink({ each, label, granularity }: PeriodLinkProps) {
  const days = daysOf(each.period, granularity);
  return (
    <SessionsLink to={{ ...days, project: each.project ?? "" }}>
      {each.period} {label}
    </SessionsLink>
  );
}
