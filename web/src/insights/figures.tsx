/** The tables of tools, commands, files, models, subagents, compactions and errors. Each name leads to its sessions. */

import { Link } from "wouter";
import { filePage, sessionPage } from "@/api/paths";
import type {
  CommandFigures,
  CompactionFigures,
  EditedFile,
  ErrorFigures,
  ModelFigures,
  SubagentShare,
  ToolUsage,
} from "@/api/types";
import { FiguresTable, type SortedTable } from "@/charts/figures-table";
import {
  formatCompact,
  formatCost,
  formatCount,
  formatShare,
  formatTotalCost,
  UNKNOWN,
} from "@/format/numbers";
import { dayKey, formatDuration } from "@/format/time";
import { useAgents } from "@/sessions/use-agents";
import { SearchLink, SessionsLink } from "./links";

function time(milliseconds: number | null): string {
  return milliseconds === null ? UNKNOWN : formatDuration(milliseconds);
}

function rounded(value: number | null): string {
  if (value === null) return UNKNOWN;
  return value < 100 ? value.toFixed(1) : formatCompact(Math.round(value));
}

export function ToolTable({ tools }: { tools: ToolUsage[] }) {
  return (
    <FiguresTable
      columns={["Tool", "Calls", "Failed", "Share failed", "Denied", "Time"]}
      rows={tools.map((each) => ({
        key: `${each.tool_name} ${each.kind}`,
        cells: [
          <SearchLink key="name" to={{ tool: each.tool_name }}>
            {each.tool_name}
          </SearchLink>,
          formatCount(each.calls),
          <Failed key="failed" count={each.failed} to={{ tool: each.tool_name }} />,
          formatShare(each.failed / each.calls),
          formatCount(each.denied),
          time(each.unknown_durations < each.calls ? each.duration_ms : null),
        ],
      }))}
    />
  );
}

/** Time that commands took. Logs have whole milliseconds, and no command takes none. */
function TimeTaken({ milliseconds }: { milliseconds: number | null }) {
  if (milliseconds === null) {
    return (
      <span className="unknown" title={UNKNOWN}>
        –
      </span>
    );
  }
  return milliseconds < 1 ? "< 1 ms" : formatDuration(milliseconds);
}

interface CommandTableProps extends SortedTable {
  commands: CommandFigures[];
  found: number;
}

export function CommandTable({ commands, found, ...sorted }: CommandTableProps) {
  return (
    <FiguresTable
      found={found}
      sorted={{ ...sorted, first: "Time" }}
      columns={["Command", "Calls", "Failed", "Median", "Longest", "Time"]}
      rows={commands.map((each) => ({
        key: each.command ?? "",
        cells: [
          each.command ? (
            <SearchLink key="name" to={{ q: `"${each.command}"`, field: "input" }}>
              {each.command}
            </SearchLink>
          ) : (
            <span
              key="name"
              className="unknown"
              title="Of these calls no command is recorded, or its first word names no program"
            >
              (no program recognised)
            </span>
          ),
          formatCount(each.calls),
          each.command ? (
            <Failed key="failed" count={each.failed} to={{ q: `"${each.command}"`, field: "input" }} />
          ) : (
            formatCount(each.failed)
          ),
          <TimeTaken key="median" milliseconds={each.median_ms} />,
          <LongestCall key="longest" each={each} />,
          <TimeTaken key="time" milliseconds={totalTime(each)} />,
        ],
        values: [each.calls, each.failed, each.median_ms, each.longest_ms, totalTime(each)],
      }))}
    />
  );
}

function totalTime({ median_ms, duration_ms }: CommandFigures): number | null {
  return median_ms === null ? null : duration_ms;
}

/** How many calls failed, with the way to them. */
function Failed({ count, to }: { count: number; to: Record<string, string> }) {
  if (count === 0) return formatCount(count);
  return <SearchLink to={{ ...to, failed: "true" }}>{formatCount(count)}</SearchLink>;
}

function LongestCall({ each }: { each: CommandFigures }) {
  const text = <TimeTaken milliseconds={each.longest_ms} />;
  if (each.longest_ms === null || !each.longest_session_id) return text;
  return (
    <Link href={sessionPage(each.longest_session_id, each.longest_message_id ?? undefined)}>{text}</Link>
  );
}

export function FileTable({ files, found }: { files: EditedFile[]; found: number }) {
  return (
    <FiguresTable
      found={found}
      columns={["File", "Edits", "Sessions"]}
      rows={files.map((each) => ({
        key: each.path,
        cells: [
          <Link key="path" href={filePage(each.path)} title={each.path}>
            {each.path}
          </Link>,
          formatCount(each.edits),
          formatCount(each.sessions),
        ],
      }))}
    />
  );
}

export function ModelTable({ models }: { models: ModelFigures[] }) {
  return (
    <FiguresTable
      columns={[
        "Model",
        "Calls",
        "Cost",
        "Cost per prompt",
        "Steps per prompt",
        "From cache",
        "Output per call",
        "Failed tool calls",
      ]}
      rows={models.map((each) => ({
        key: each.model ?? "",
        cells: [
          each.model ? (
            <SessionsLink key="name" to={{ model: each.model }}>
              {each.model}
            </SessionsLink>
          ) : (
            <span key="name" className="unknown">
              {UNKNOWN}
            </span>
          ),
          formatCount(each.calls),
          formatTotalCost(each.cost, each.unpriced_calls),
          each.cost_per_prompt === null ? UNKNOWN : `≈ ${formatCost(each.cost_per_prompt)}`,
          each.steps_per_prompt === null ? UNKNOWN : `≈ ${rounded(each.steps_per_prompt)}`,
          formatShare(each.cache_share),
          each.is_lower_bound ? `≥ ${rounded(each.output_per_call)}` : rounded(each.output_per_call),
          formatCount(each.failed_tool_calls),
        ],
      }))}
    />
  );
}

export function SubagentTable({ subagents }: { subagents: SubagentShare }) {
  return (
    <FiguresTable
      columns={["Part", "Sessions", "Model calls", "Cost", "Share of the cost"]}
      rows={[
        {
          key: "subagents",
          cells: [
            <Link key="name" href="/usage?by=subagent">
              Subagents
            </Link>,
            <SessionsLink key="sessions" to={{ having: "subagent" }}>
              {formatCount(subagents.sessions)}
            </SessionsLink>,
            formatCount(subagents.calls),
            formatCost(subagents.cost),
            formatShare(subagents.share),
          ],
        },
      ]}
    />
  );
}

export function CompactionTable({ compactions }: { compactions: CompactionFigures[] }) {
  const look = useAgents();
  return (
    <FiguresTable
      columns={["Agent", "Compactions", "Sessions", "Tokens before"]}
      rows={compactions.map((each) => ({
        key: `${each.agent} ${each.trigger}`,
        cells: [
          <SessionsLink key="name" to={{ agent: each.agent, having: "compaction" }}>
            {[look(each.agent).name, each.trigger].filter(Boolean).join(", ")}
          </SessionsLink>,
          formatCount(each.compactions),
          formatCount(each.sessions),
          rounded(each.median_tokens_before),
        ],
      }))}
    />
  );
}

export function ErrorTable({ errors, found }: { errors: ErrorFigures[]; found: number }) {
  const look = useAgents();
  return (
    <FiguresTable
      found={found}
      columns={["Error", "Times", "Sessions", "Last"]}
      rows={errors.map((each) => ({
        key: `${each.agent} ${each.kind} ${each.status} ${each.is_limit}`,
        cells: [
          <SessionsLink key="name" to={{ agent: each.agent, having: "error" }}>
            <ErrorName each={each} agent={look(each.agent).name} />
          </SessionsLink>,
          formatCount(each.errors),
          formatCount(each.sessions),
          each.last_session_id ? (
            <Link key="last" href={sessionPage(each.last_session_id, each.last_message_id ?? undefined)}>
              {each.last_at ? dayKey(each.last_at) : "time not recorded"}
            </Link>
          ) : (
            UNKNOWN
          ),
        ],
      }))}
    />
  );
}

/** "Claude Code, rate limit reached, 429": a kind without plain words is code, as the agent has it. */
function ErrorName({ each, agent }: { each: ErrorFigures; agent: string }) {
  const { kind, label, status, is_limit } = each;
  return (
    <>
      {agent}
      {label && `, ${label}`}
      {kind && !label && (
        <>
          , <code>{kind}</code>
        </>
      )}
      {status !== null && `, ${status}`}
      {is_limit && ", limit"}
    </>
  );
}
