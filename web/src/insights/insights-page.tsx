/** When you work, what it costs where, and what fails: each figure as a table too, as CSV, and with a way to its sessions. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { getJson, queryString } from "@/api/client";
import { download } from "@/api/files";
import { INSIGHTS } from "@/api/paths";
import type { Insights } from "@/api/types";
import type { SortedTable } from "@/charts/figures-table";
import { LoadButton } from "@/design/load-button";
import { Loading, Refreshed } from "@/design/loading";
import { Problem } from "@/design/problem";
import { AgentFilter, FilterBar, FilterDates, ProjectFilter } from "@/filters/filters";
import { countSet, useUrlFilters } from "@/filters/url-filters";
import { formatCount } from "@/format/numbers";
import { dayAfter, startOf } from "@/format/time";
import { useTitle } from "@/shell/title";
import { ActivityGrid, ActivityTable } from "./activity";
import {
  CommandTable,
  CompactionTable,
  ErrorTable,
  FileTable,
  ModelTable,
  SubagentTable,
  ToolTable,
} from "./figures";
import { ReportFilters } from "./links";
import { ProjectChart, ProjectTable } from "./projects-over-time";
import "./insights.css";

const FILTERS = ["agent", "project", "since", "until"] as const;
const SORTING = ["sort", "order"] as const;

export default function InsightsPage() {
  const [filters, change] = useUrlFilters(FILTERS);
  const { since, until, ...others } = filters;
  const [sorting, sort] = useUrlFilters(SORTING);
  const parameters = {
    ...others,
    since: since && startOf(since),
    until: until && startOf(dayAfter(until)),
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC",
  };
  const insights = useQuery({
    queryKey: ["insights", parameters],
    queryFn: ({ signal }) => getJson<Insights>(INSIGHTS, parameters, signal),
    placeholderData: (previous) => previous,
  });
  useTitle("Insights");
  const csv = (section: string) => download(INSIGHTS + queryString({ ...parameters, section }));
  return (
    <main className="page insights">
      <div className="page-head">
        <h1>Insights</h1>
      </div>
      <FilterBar
        label="Insight filters"
        first={<FilterDates since={since} until={until} onChange={change} />}
        active={countSet(filters, ["agent", "project"])}
      >
        <AgentFilter value={filters.agent} onChange={(agent) => change({ agent })} />
        <ProjectFilter value={filters.project} onChange={(project) => change({ project })} />
      </FilterBar>
      <Loading busy={insights.isPending} />
      {insights.isError && <Problem error={insights.error} what="The insights" asked="This choice" />}
      {insights.data && !insights.isError && (
        <ReportFilters value={filters}>
          <Refreshed busy={insights.isPlaceholderData}>
            <Sections report={insights.data} csv={csv} sorting={sorting} onSort={sort} />
          </Refreshed>
        </ReportFilters>
      )}
    </main>
  );
}

interface SectionsProps extends SortedTable {
  report: Insights;
  csv: (section: string) => Promise<void>;
}

function Sections({ report, csv, ...sorted }: SectionsProps) {
  const { activity, projects, tools, commands, files, models, subagents, compactions, errors } = report;
  if (activity.length === 0 && tools.length === 0 && report.undated_calls === 0) {
    return (
      <div className="problem">
        <h2>Nothing happened here</h2>
        <p>There are no prompts, model calls and tool calls in this period.</p>
      </div>
    );
  }
  return (
    <>
      <Section
        title="Activity by hour of the week"
        name="activity"
        csv={csv}
        note={`The stronger the colour, the more prompts and model calls. Time zone: ${report.zone}.`}
        chart={<ActivityGrid hours={activity} />}
        table={<ActivityTable hours={activity} />}
      />
      <Section
        title={`Projects by ${report.granularity}`}
        name="projects"
        csv={csv}
        chart={<ProjectChart periods={projects} granularity={report.granularity} />}
        table={<ProjectTable periods={projects} granularity={report.granularity} />}
      />
      {tools.length > 0 && (
        <Section
          title="Tools"
          name="tools"
          note="Time is what the agent recorded for a call, otherwise from the call to its result."
          csv={csv}
          table={<ToolTable tools={tools} />}
        />
      )}
      {commands.length > 0 && (
        <Section
          title="Slow and failing commands"
          name="commands"
          csv={csv}
          note={`By program and subcommand; the median and the longest time of a call.${
            report.commands_found > commands.length
              ? ` Of ${formatCount(report.commands_found)}, those with the most calls, failures and time are listed.`
              : ""
          }`}
          table={<CommandTable commands={commands} found={report.commands_found} {...sorted} />}
        />
      )}
      {files.length > 0 && (
        <Section
          title="Most edited files"
          name="files"
          csv={csv}
          table={<FileTable files={files} found={report.files_found} />}
        />
      )}
      {models.length > 0 && (
        <Section
          title="Models compared"
          name="models"
          csv={csv}
          note="Cost and steps per prompt are approximate: of whole sessions of one model, without subagents."
          table={<ModelTable models={models} />}
        />
      )}
      {subagents.calls > 0 && (
        <Section
          title="Subagents"
          name="subagents"
          csv={csv}
          table={<SubagentTable subagents={subagents} />}
        />
      )}
      {compactions.length > 0 && (
        <Section
          title="Compactions"
          name="compactions"
          csv={csv}
          table={<CompactionTable compactions={compactions} />}
        />
      )}
      {errors.length > 0 && (
        <Section
          title="Limits and errors"
          name="errors"
          csv={csv}
          table={<ErrorTable errors={errors} found={report.errors_found} />}
        />
      )}
      <ul className="insights-notes">
        {report.notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </>
  );
}

interface SectionProps {
  title: string;
  name: string;
  csv: (section: string) => Promise<void>;
  note?: string;
  chart?: ReactNode;
  table: ReactNode;
}

/** A chart with its table behind a button, or a table alone. */
function Section({ title, name, csv, note, chart, table }: SectionProps) {
  const [isTable, setIsTable] = useState(false);
  return (
    <section className="insight" aria-labelledby={`insight-${name}`}>
      <div className="insight-head">
        <h2 id={`insight-${name}`}>{title}</h2>
        {chart && (
          <button
            type="button"
            className="button"
            aria-pressed={isTable}
            aria-label={`${title} as a table`}
            onClick={() => setIsTable(!isTable)}
          >
            Table
          </button>
        )}
        <LoadButton className="button" load={() => csv(name)}>
          CSV<span className="visually-hidden"> of {title}</span>
        </LoadButton>
      </div>
      {note && <p className="insight-note">{note}</p>}
      {chart && !isTable ? chart : table}
    </section>
  );
}
