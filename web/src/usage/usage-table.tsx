/** The figures: what each day, model, project, session or agent used, with its share of the whole. */

import { Fragment } from "react";
import { Link } from "wouter";
import type { UsageBlock, UsageBy, UsagePart, UsageReport, UsageRow, UsageTotals } from "@/api/types";
import { daysOf } from "@/charts/calendar";
import { projectLabels } from "@/filters/project-label";
import { formatCost, formatCount, plural, UNKNOWN } from "@/format/numbers";
import { formatClock, formatDuration } from "@/format/time";
import { useAgents } from "@/sessions/use-agents";
import type { Measure } from "./measures";
import { BY, type Listed, listOf } from "./names";
import {
  ALL,
  CACHE_READ,
  CACHE_WRITTEN,
  formatSum,
  formatSumCost,
  INPUT,
  isBound,
  type Kind,
  OUTPUT,
  sumOf,
  THINKING,
} from "./sums";
import { isTime } from "./time-chart";

interface UsageTableProps {
  report: UsageReport;
  /** Those of its rows that are shown. */
  rows: UsageRow[];
  measure: Measure;
  filters: Listed;
}

interface Column {
  label: string;
  kind: Kind;
}

const COLUMNS: Column[] = [
  { label: "Input tokens", kind: INPUT },
  { label: "Cache read", kind: CACHE_READ },
  { label: "Cache written", kind: CACHE_WRITTEN },
  { label: "Output tokens", kind: OUTPUT },
  { label: "of which thinking", kind: THINKING },
  { label: "All tokens", kind: ALL },
];

/** Where no log tells thinking from output, a column of zeros would be wrong. */
function columnsOf(totals: UsageTotals): Column[] {
  return COLUMNS.filter(({ kind }) => kind !== THINKING || totals.reasoning > 0);
}

export function UsageTable({ report, rows, measure, filters }: UsageTableProps) {
  const { by, then_by, totals } = report;
  const columns = columnsOf(totals);
  const hasReported = [report, ...rows].some((each) => each.totals.reported_cost != null);
  const look = useAgents();
  const agentName = (agent: string) => look(agent).name;
  const labels = labelsOf(by, rows, agentName);
  const largest = Math.max(0, ...rows.map((row) => measure.of(row.totals) ?? 0));
  const parts = rows.flatMap((row) => row.parts);
  const partLabels = then_by ? labelsOf(then_by, parts, agentName) : new Map<string | null, string>();
  return (
    <div className="usage-table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">
              {[BY[by], then_by && BY[then_by].toLowerCase()].filter(Boolean).join(" and ")}
            </th>
            {report.active_ms !== null && <th scope="col">Active</th>}
            <th scope="col">Cost</th>
            {hasReported && <th scope="col">Reported</th>}
            <th scope="col">Calls</th>
            {columns.map(({ label }) => (
              <th scope="col" key={label}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <tr className="usage-total">
            <th scope="row">Total</th>
            <Active report={report} milliseconds={report.active_ms} />
            <Figures totals={summed(report)} columns={columns} hasReported={hasReported} />
          </tr>
          {rows.map((row) => (
            <Fragment key={row.name ?? ""}>
              <tr className={then_by ? "usage-divided" : undefined}>
                <th scope="row">
                  <Share value={measure.of(row.totals)} largest={largest} />
                  <Name by={by} row={row} label={labels.get(row.name) ?? ""} filters={filters} />
                  {row.block?.is_running && <Running block={row.block} />}
                </th>
                <Active report={report} milliseconds={row.active_ms} />
                <Figures totals={row.totals} columns={columns} hasReported={hasReported} />
              </tr>
              {then_by &&
                row.parts.map((part) => (
                  <tr key={part.name ?? ""} className="usage-part">
                    <th scope="row">
                      <Name
                        by={then_by}
                        row={part}
                        label={partLabels.get(part.name) ?? ""}
                        filters={row.name === null ? filters : { ...filters, ...narrowed(by, row.name) }}
                      />
                    </th>
                    <Active report={report} />
                    <Figures totals={part.totals} columns={columns} hasReported={hasReported} />
                  </tr>
                ))}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/**
 * The totals of a report. An agent also reports of a session what a fork began with, and what no call of it cost: where
 * the rows of sessions come to another sum, none is shown.
 */
function summed({ by, rows, totals }: UsageReport): UsageTotals {
  if (by !== "session" && by !== "subagent") return totals;
  const reported = rows.reduce((sum, row) => sum + (row.totals.reported_cost ?? 0), 0);
  const isSum = Math.abs(reported - (totals.reported_cost ?? 0)) < 1e-6;
  return isSum ? totals : { ...totals, reported_cost: null };
}

/** The filters that select what is in a row, as far as the list of sessions has them. */
function narrowed(by: UsageBy, name: string): Listed {
  if (isTime(by)) return daysOf(name, by);
  return by === "model" || by === "project" || by === "agent" ? { [by]: name } : {};
}

/** Until when the running block lasts, its rate, and what it comes to at that rate. */
function Running({ block }: { block: UsageBlock }) {
  const { end, cost_per_hour, projected_cost } = block;
  const rate = cost_per_hour === null ? "" : `, ${formatCost(cost_per_hour)} an hour`;
  const projection = projected_cost === null ? "" : `, ≈ ${formatCost(projected_cost)} at its end`;
  return (
    <span className="usage-running">
      running until {formatClock(end)}
      {rate}
      {projection}
    </span>
  );
}

/** What each row is called, by its name. */
function labelsOf(
  by: UsageBy,
  rows: (UsageRow | UsagePart)[],
  agentName: (agent: string) => string,
): Map<string | null, string> {
  const named = rows.flatMap(({ name, label }) =>
    name === null ? [] : [{ path: name, name: label ?? name }],
  );
  if (by === "project") return projectLabels(named);
  return new Map(named.map(({ path, name }) => [path, by === "agent" ? agentName(path) : name]));
}

interface FiguresProps {
  totals: UsageTotals;
  columns: Column[];
  hasReported: boolean;
}

function Figures({ totals, columns, hasReported }: FiguresProps) {
  return (
    <>
      <td className={totals.cost === null ? "unknown" : undefined}>{formatSumCost(totals)}</td>
      {hasReported && (
        <td title={REPORTED}>{totals.reported_cost != null && formatCost(totals.reported_cost)}</td>
      )}
      <td>{formatCount(totals.calls)}</td>
      {columns.map(({ label, kind }) => (
        <Figure key={label} totals={totals} kind={kind} />
      ))}
    </>
  );
}

const REPORTED = "As agents reported it, as far as they did; it is not in the cost";

/** How long sessions were active in a period, null if that is unknown; nothing where a row is none. */
function Active({ report, milliseconds }: { report: UsageReport; milliseconds?: number | null }) {
  if (report.active_ms === null) return null;
  if (milliseconds === null) return <td className="unknown">{UNKNOWN}</td>;
  return <td title={ACTIVE}>{milliseconds !== undefined && formatDuration(milliseconds)}</td>;
}

const ACTIVE =
  "Without gaps of more than ten minutes and without subagents; what ran at the same time adds up";

function Figure({ totals, kind }: { totals: UsageTotals; kind: Kind }) {
  const count = sumOf(totals, kind);
  if (count === null) return <td className="unknown">{UNKNOWN}</td>;
  const title = [
    formatCount(count),
    totals.session_totals > 0 && `${plural(totals.session_totals, "total")} of sessions at their last time`,
    totals.estimated_calls > 0 && `${plural(totals.estimated_calls, "call")} estimated`,
    totals.unknown_calls > 0 && `${plural(totals.unknown_calls, "call")} without a count`,
    isBound(totals, kind) && "at least: of some calls the output is known only as that",
  ];
  return (
    <td title={count > 0 ? title.filter(Boolean).join(" · ") : formatCount(count)}>
      {formatSum(totals, kind)}
    </td>
  );
}

function Share({ value, largest }: { value: number | null; largest: number }) {
  const width = largest > 0 ? (100 * (value ?? 0)) / largest : 0;
  return <span className="usage-share" style={{ width: `${width}%` }} />;
}

interface NameProps {
  by: UsageBy;
  row: UsageRow | UsagePart;
  label: string;
  filters: Listed;
}

function Name({ by, row, label, filters }: NameProps) {
  if (row.name === null && by === "subagent") return <span>No subagent</span>;
  if (row.name === null) return <span className="unknown">{UNKNOWN}</span>;
  return (
    <Link href={listOf(by, row.name, filters)} title={row.name}>
      {by === "hour" || by === "block" ? label.slice(0, 16).replace("T", " ") : label}
    </Link>
  );
}
