/** Tokens and cost by day, model, project, session or agent, with what each total contains and lacks. */

import { useQuery } from "@tanstack/react-query";
import { getJson, queryString } from "@/api/client";
import { download } from "@/api/files";
import { USAGE } from "@/api/paths";
import type { UsageBy, UsageReport, UsageRow, UsageTotals } from "@/api/types";
import { LoadButton } from "@/design/load-button";
import { Loading, Refreshed } from "@/design/loading";
import { Problem } from "@/design/problem";
import { Segments } from "@/design/segments";
import {
  AgentFilter,
  FilterBar,
  FilterDates,
  FilterSelect,
  ModelFilter,
  ProjectFilter,
} from "@/filters/filters";
import { countSet, type Filters, useUrlFilters } from "@/filters/url-filters";
import { formatCount } from "@/format/numbers";
import { dayAfter, startOf } from "@/format/time";
import { PersonFilters } from "@/hub/person-filters";
import { useTitle } from "@/shell/title";
import { Budgets } from "./budgets";
import { Comparison } from "./comparison";
import { COST, knownMeasure, MEASURES, REPORTED } from "./measures";
import { BY, type Listed } from "./names";
import { ALL, formatAnyCost, formatSum, hasTokens, isUsed, OUTPUT, THINKING, tellsCache } from "./sums";
import { isTime, TimeChart } from "./time-chart";
import { UsageTable } from "./usage-table";
import "./usage.css";

const FILTERS = [
  "by",
  "then_by",
  "measure",
  "zone",
  "agent",
  "project",
  "model",
  "user",
  "machine",
  "since",
  "until",
  "compare",
] as const;

const CHOICES = Object.entries(BY).map(([value, label]) => ({ value: value as UsageBy, label }));

const ZONES = [
  { value: "", label: "My time" },
  { value: "UTC", label: "UTC" },
];

/** The zone of hours and days, and the times between which a report is: days begin at midnight of this zone. */
function timesOf(isUtc: boolean, since: string, until: string) {
  if (isUtc) return { zone: "UTC", since, until: until && dayAfter(until) };
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  return { zone, since: since && startOf(since), until: until && startOf(dayAfter(until)) };
}

/** Of whom a report is. */
function whose({ agent, project, model, user, machine }: Filters<(typeof FILTERS)[number]>) {
  return { agent, project, model, user, machine };
}

/** A page of rows that can still be read; the totals are of all. */
const ROWS = 200;

export default function UsagePage() {
  const [filters, change] = useUrlFilters(FILTERS);
  // What the page has no button for is the server's to answer, or to refuse with the words that there are.
  const by = (filters.by || "day") as UsageBy;
  const measure = MEASURES.find(({ value }) => value === filters.measure) ?? COST;
  const { measure: _, zone, since, until, compare, ...others } = filters;
  const isCompared = compare !== "";
  const parameters = { ...others, by, ...timesOf(zone === "UTC", since, until) };
  const usage = useQuery({
    queryKey: ["usage", parameters],
    queryFn: ({ signal }) => getJson<UsageReport>(USAGE, { ...parameters, active: true }, signal),
    placeholderData: (previous) => previous,
    enabled: !isCompared,
  });
  const known = usage.data ? knownMeasure(measure, usage.data.totals) : measure;
  useTitle("Usage");
  return (
    <main className="page usage">
      <div className="page-head">
        <h1>Usage</h1>
        <button
          type="button"
          className="button usage-compare"
          aria-pressed={isCompared}
          title="Compare with the time before: what changed, and why it cost more or less"
          onClick={() => change({ compare: isCompared ? "" : "1" })}
        >
          Compare
        </button>
        <LoadButton
          className="button usage-csv"
          load={() => download(USAGE + queryString({ ...parameters, format: "csv" }))}
        >
          CSV
        </LoadButton>
      </div>
      <FilterBar
        label="Usage filters"
        first={
          !isCompared && (
            <Segments
              label="By"
              choices={CHOICES}
              value={by}
              onChange={(value) =>
                change({
                  by: value === "day" ? "" : value,
                  ...(value === filters.then_by && { then_by: "" }),
                })
              }
            />
          )
        }
        active={countSet(filters, [
          "then_by",
          "measure",
          "zone",
          "agent",
          "project",
          "model",
          "user",
          "machine",
          "since",
        ])}
      >
        {!isCompared && (
          <>
            <FilterSelect
              label="Then by"
              everything="Then by…"
              value={filters.then_by}
              choices={CHOICES.filter(({ value }) => value !== by)}
              onChange={(value) => change({ then_by: value })}
            />
            <Segments
              label="Measure"
              choices={MEASURES}
              value={known === REPORTED ? COST.value : known.value}
              onChange={(value) => change({ measure: value === "cost" ? "" : value })}
            />
          </>
        )}
        <Segments
          label="Days of"
          choices={ZONES}
          value={zone}
          onChange={(value) => change({ zone: value })}
        />
        <AgentFilter value={filters.agent} onChange={(agent) => change({ agent })} />
        <PersonFilters user={filters.user} machine={filters.machine} onChange={change} />
        <ProjectFilter value={filters.project} onChange={(project) => change({ project })} />
        <ModelFilter value={filters.model} onChange={(model) => change({ model })} />
        <FilterDates since={filters.since} until={filters.until} onChange={change} />
      </FilterBar>
      {!isCompared && <Loading busy={usage.isPending} />}
      {usage.isError && <Problem error={usage.error} what="The usage" asked="This choice" />}
      {isCompared && (
        <Comparison
          parameters={{ ...timesOf(zone === "UTC", since, until), ...whose(filters) }}
          filters={filters}
        />
      )}
      {usage.data && !usage.isError && !isCompared && (
        <Refreshed busy={usage.isPlaceholderData}>
          <Report answer={usage.data} measure={known} filters={filters} />
        </Refreshed>
      )}
    </main>
  );
}

/** What no log tells the day of comes last. */
function newestFirst(rows: UsageRow[]): UsageRow[] {
  const [known, unknown] = [rows.filter(({ name }) => name), rows.filter(({ name }) => !name)];
  return [...known.toReversed(), ...unknown];
}

interface ReportProps {
  answer: UsageReport;
  measure: typeof COST;
  filters: Listed;
}

function Report({ answer, measure, filters }: ReportProps) {
  const { by, rows, totals } = answer;
  if (!isUsed(totals)) {
    return (
      <>
        <Budgets budgets={answer.budgets} />
        <div className="problem">
          <h2>No model calls here</h2>
          <p>Nothing was used in this period, or the logs do not record it.</p>
          {answer.missing.map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
        </div>
      </>
    );
  }
  const used = rows.filter((row) => isUsed(row.totals));
  const shown = isTime(by) ? newestFirst(used) : used;
  return (
    <>
      <Budgets budgets={answer.budgets} />
      <UsageSummary totals={totals} />
      <TimeChart report={answer} measure={measure} filters={filters} />
      <UsageTable report={answer} rows={shown.slice(0, ROWS)} measure={measure} filters={filters} />
      {shown.length > ROWS && (
        <p className="usage-note">
          The first {ROWS} of {shown.length}.
        </p>
      )}
      <UsageContents answer={answer} />
    </>
  );
}

/** Totals of the table in large, under the names of its columns. */
export function UsageSummary({ totals }: { totals: UsageTotals }) {
  return (
    <dl className="usage-summary">
      <Figure
        label="Cost"
        value={formatAnyCost(totals)}
        note={
          totals.cost === null && totals.reported_cost !== null ? "no list price known" : "at list prices"
        }
      />
      <Figure label="All tokens" value={formatSum(totals, ALL)} note={cached(totals)} />
      <Figure label="Output tokens" value={formatSum(totals, OUTPUT)} note={thinking(totals)} />
      <Figure label="Model calls" value={formatCount(totals.calls)} note="" />
    </dl>
  );
}

/** How much of what the model was sent came from the cache; nothing where no log tells that. */
function cached(totals: UsageTotals): string {
  const sent = totals.tokens - totals.output - totals.reasoning;
  if (!tellsCache(totals)) return "";
  return sent > 0 ? `${Math.round((100 * totals.cache_read) / sent)} % of the input from cache` : "";
}

function thinking(totals: UsageTotals): string {
  if (!hasTokens(totals)) return "";
  return totals.reasoning > 0
    ? `${formatSum(totals, THINKING)} of which thinking, as far as logs record it`
    : "thinking included";
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
