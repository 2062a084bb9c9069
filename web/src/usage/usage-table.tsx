/** The figures: what each day, model, project, session or agent used, with its share of the whole. */

import { Link } from "wouter";
import { sessionPage } from "@/api/paths";
import type { UsageBy, UsageRow, UsageTotals } from "@/api/types";
import { projectLabels } from "@/filters/project-label";
import { formatCompact, formatCount, formatTotalCost, UNKNOWN } from "@/format/numbers";
import { useAgents } from "@/sessions/use-agents";
import { type Measure, outputOf } from "./measures";

interface UsageTableProps {
  by: UsageBy;
  rows: UsageRow[];
  totals: UsageTotals;
  measure: Measure;
}

interface Column {
  label: string;
  of: (totals: UsageTotals) => number;
}

const THINKING = "of it thinking";

const COLUMNS: Column[] = [
  { label: "Calls", of: (totals) => totals.calls },
  { label: "Input", of: (totals) => totals.input + totals.tool_prompt },
  { label: "Cache read", of: (totals) => totals.cache_read },
  {
    label: "Cache written",
    of: (totals) => totals.cache_write_5m + totals.cache_write_1h + totals.cache_write,
  },
  { label: "Output", of: outputOf },
  { label: THINKING, of: (totals) => totals.reasoning },
  { label: "All tokens", of: (totals) => totals.tokens },
];

/** Where no log tells thinking from output, a column of zeros would be wrong. */
function columnsOf(totals: UsageTotals): Column[] {
  return COLUMNS.filter(({ label }) => label !== THINKING || totals.reasoning > 0);
}

const TITLES: Record<UsageBy, string> = {
  hour: "Hour",
  day: "Day",
  week: "Week of",
  month: "Month",
  block: "Block",
  model: "Model",
  project: "Project",
  session: "Session",
  agent: "Agent",
  subagent: "Subagent",
};

export function UsageTable({ by, rows, totals, measure }: UsageTableProps) {
  const columns = columnsOf(totals);
  const look = useAgents();
  const labels = labelsOf(by, rows, (agent) => look(agent).name);
  const largest = Math.max(0, ...rows.map((row) => measure.of(row.totals) ?? 0));
  return (
    <div className="usage-table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{TITLES[by]}</th>
            <th scope="col">Cost</th>
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
            <Figures totals={totals} columns={columns} />
          </tr>
          {rows.map((row) => (
            <tr key={row.name ?? ""}>
              <th scope="row">
                <Share value={measure.of(row.totals)} largest={largest} />
                <Name by={by} row={row} label={labels.get(row.name) ?? ""} />
              </th>
              <Figures totals={row.totals} columns={columns} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What each row is called, by its name. */
function labelsOf(
  by: UsageBy,
  rows: UsageRow[],
  agentName: (agent: string) => string,
): Map<string | null, string> {
  const named = rows.flatMap(({ name, label }) =>
    name === null ? [] : [{ path: name, name: label ?? name }],
  );
  if (by === "project") return projectLabels(named);
  return new Map(named.map(({ path, name }) => [path, by === "agent" ? agentName(path) : name]));
}

function Figures({ totals, columns }: { totals: UsageTotals; columns: Column[] }) {
  return (
    <>
      <td className={totals.cost === null && totals.calls > 0 ? "unknown" : undefined}>
        {formatTotalCost(totals.cost, totals.unpriced_calls + totals.unknown_calls)}
      </td>
      {columns.map((column) => (
        <Figure key={column.label} totals={totals} column={column} />
      ))}
    </>
  );
}

function Figure({ totals, column }: { totals: UsageTotals; column: Column }) {
  const count = column.of(totals);
  if (column.label === "Calls") return <td>{formatCount(count)}</td>;
  // Many logs count thinking as output: no thinking beside output is not known to be none.
  const isUntold = column.label === THINKING && count === 0 && totals.output > 0;
  if (isUntold || totals.unknown_calls === totals.calls) return <td className="unknown">{UNKNOWN}</td>;
  return <td title={formatCount(count)}>{formatCompact(count)}</td>;
}

function Share({ value, largest }: { value: number | null; largest: number }) {
  const width = largest > 0 ? (100 * (value ?? 0)) / largest : 0;
  return <span className="usage-share" style={{ width: `${width}%` }} />;
}

function Name({ by, row, label }: { by: UsageBy; row: UsageRow; label: string }) {
  if (row.name === null && by === "subagent") return <span>No subagent</span>;
  if (row.name === null) return <span className="unknown">{UNKNOWN}</span>;
  if (by === "session" || by === "subagent") return <Link href={sessionPage(row.name)}>{label}</Link>;
  if (by === "day") return <Link href={`/?since=${row.name}&until=${row.name}`}>{label}</Link>;
  return (
    <Link href={`/?${by}=${encodeURIComponent(row.name)}`} title={row.name}>
      {label}
    </Link>
  );
}
