/** What the team used: sums of groups that are large enough, over all sessions, also those that nobody else reads. */

import { useQuery } from "@tanstack/react-query";
import { getJson, queryString } from "@/api/client";
import { download } from "@/api/files";
import { useItems } from "@/api/use-items";
import { BarChart } from "@/charts/bar-chart";
import { everyPeriod, periodLabel } from "@/charts/calendar";
import { FiguresTable } from "@/charts/figures-table";
import { type Chart, toPeriods, toSeries } from "@/charts/series";
import { LoadButton } from "@/design/load-button";
import { PathEnd } from "@/design/path-end";
import { Problem } from "@/design/problem";
import { Segments } from "@/design/segments";
import { FilterBar, FilterDates } from "@/filters/filters";
import { countSet, useUrlFilters } from "@/filters/url-filters";
import { formatCompact, formatCount, formatShare, formatTotalCost, plural, UNKNOWN } from "@/format/numbers";
import { dayAfter, formatExact } from "@/format/time";
import { COST } from "@/usage/measures";
import { labelsOf } from "./names";
import { MEMBERS, TEAM_USAGE } from "./paths";
import type { Member, Sums, TeamUsage } from "./schema";
import type { SectionProps } from "./section";
import { TeamBudgets } from "./team-budgets";
import "@/usage/usage.css";

const BY = [
  { value: "", label: "Project" },
  { value: "person", label: "Person" },
  { value: "model", label: "Model" },
  { value: "day", label: "Day" },
];

export function TeamUsageSection({ me }: SectionProps) {
  const [filters, change] = useUrlFilters(["by", "since", "until"] as const);
  const parameters = {
    by: filters.by || "project",
    since: filters.since, // figures of a team are of whole days in UTC
    until: filters.until && dayAfter(filters.until),
  };
  const usage = useQuery({
    queryKey: [TEAM_USAGE, parameters],
    queryFn: ({ signal }) => getJson<TeamUsage>(TEAM_USAGE, parameters, signal),
    placeholderData: (previous) => previous,
  });
  return (
    <>
      <section className="team-section" aria-label="Usage of the team">
        <FilterBar
          label="Usage filters"
          first={<Segments label="By" choices={BY} value={filters.by} onChange={(by) => change({ by })} />}
          active={countSet(filters, ["since"])}
        >
          <FilterDates since={filters.since} until={filters.until} onChange={change} />
          <LoadButton
            className="button"
            load={() => download(TEAM_USAGE + queryString({ ...parameters, format: "csv" }))}
          >
            CSV
          </LoadButton>
        </FilterBar>
        {usage.isError && <Problem error={usage.error} what="The usage of the team" />}
        {usage.data && <Report usage={usage.data} />}
      </section>
      {usage.data && (
        <TeamBudgets
          projects={usage.data.by === "project" ? usage.data.rows.flatMap(({ name }) => name ?? []) : []}
          smallestGroup={usage.data.smallest_group}
          self={me.user?.id}
        />
      )}
    </>
  );
}

function Report({ usage }: { usage: TeamUsage }) {
  const labels = labelsOf(useItems<Member>(MEMBERS).map(({ user }) => user));
  const { by, rows, folded, totals, smallest_group } = usage;
  const people = plural(smallest_group, "person", "people");
  if (!totals) {
    return (
      <div className="problem">
        <h2>No figures here</h2>
        <p>
          In this time, sessions of fewer than {people} used a model. Figures of so few would tell of each of
          them; an owner may change the number under Rules.
        </p>
      </div>
    );
  }
  const nameOf = (name: string | null) => {
    if (name === null) return UNKNOWN;
    if (by === "project") return <PathEnd path={name} />;
    return (by === "person" && labels.get(name)) || name;
  };
  const ordered =
    by === "day" ? rows.toSorted((one, other) => (other.name ?? "").localeCompare(one.name ?? "")) : rows;
  const label = BY.find(({ value }) => value === by || (value === "" && by === "project"))?.label ?? by;
  return (
    <>
      {by === "day" && rows.some(({ sums }) => sums.cost != null) && (
        <BarChart title="Cost by day" chart={chartOf(usage)} />
      )}
      <FiguresTable
        columns={[label, "Cost", "Share", "All tokens", "Output tokens", "Calls", "Sessions", "People"]}
        rows={[
          { key: "total", cells: ["Total", ...figures(totals, totals)] },
          ...ordered.map(({ name, sums }) => ({
            key: `=${name ?? ""}`,
            cells: [nameOf(name), ...figures(sums, totals)],
          })),
          ...(folded
            ? [{ key: "folded", cells: ["Smaller groups together", ...figures(folded, totals)] }]
            : []),
        ]}
      />
      <ul className="usage-contents">
        <li>
          All sessions count, also private ones. These are sums only: no title and no text of a session is in
          them.
        </li>
        {smallest_group > 1 && <li>Groups of fewer than {people} are added up into one.</li>}
        {by === "project" && <li>Projects of machines that send only numbers have no name.</li>}
        {by === "day" && <li>Days are those of UTC.</li>}
        <li>Counted at {formatExact(usage.counted_at)}; counted again after a minute.</li>
      </ul>
    </>
  );
}

function figures(sums: Sums, totals: Sums): string[] {
  const isCounted = (sums.calls ?? 0) > (sums.unknown_calls ?? 0);
  return [
    formatTotalCost(sums.cost ?? null, (sums.unpriced_calls ?? 0) + (sums.unknown_calls ?? 0)),
    sums.cost != null && totals.cost ? formatShare(sums.cost / totals.cost) : UNKNOWN,
    isCounted ? formatCompact(sums.tokens ?? 0) : UNKNOWN,
    isCounted ? formatCompact(sums.output ?? 0) : UNKNOWN,
    formatCount(sums.calls ?? 0),
    sums.sessions == null ? UNKNOWN : formatCount(sums.sessions),
    formatCount(sums.people ?? 0),
  ];
}

function chartOf({ rows }: TeamUsage): Chart {
  const values = rows.flatMap(({ name, sums }) =>
    name === null ? [] : [{ period: name, name: "", label: "", value: sums.cost ?? null }],
  );
  const { series, keyOf } = toSeries(values, { all: () => null, at: () => null });
  const days = everyPeriod(
    values.map(({ period }) => period),
    "day",
  );
  return {
    series,
    periods: toPeriods(days, (day) => periodLabel(day, "day"), values, keyOf),
    format: COST.format,
    formatTick: COST.formatTick,
  };
}
