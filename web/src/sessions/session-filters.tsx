/** What the list can be narrowed down to. A filter with nothing to choose between is not shown. */

import { useCallback } from "react";
import { AGENTS, MODELS, PROJECTS } from "@/api/paths";
import type { AgentSummary, ModelSummary, ProjectSummary } from "@/api/types";
import { useItems } from "@/api/use-items";
import { FilterBar } from "@/design/filter-bar";
import { FilterDates } from "@/design/filter-dates";
import { FilterSelect } from "@/design/filter-select";
import { FilterText } from "@/design/filter-text";
import { formatCount } from "@/format/numbers";
import { countSet } from "@/shell/url-filters";
import { agentName } from "./agent-name";
import { SORTS } from "./sorts";
import type { SessionFilters } from "./use-sessions";

interface SessionFiltersBarProps {
  filters: SessionFilters;
  onChange: (changes: Partial<SessionFilters>) => void;
}

export function SessionFiltersBar({ filters, onChange }: SessionFiltersBarProps) {
  const { agents, projects, models } = useChoices();
  const changeTitle = useCallback((title: string) => onChange({ title }), [onChange]);
  const changeBranch = useCallback((branch: string) => onChange({ branch }), [onChange]);
  return (
    <FilterBar
      label="Session filters"
      first={
        <FilterText
          label="Title"
          placeholder="Filter by title"
          value={filters.title}
          onChange={changeTitle}
        />
      }
      active={countSet(filters, ["agent", "project", "model", "branch", "since", "sort"])}
    >
      {(agents.length > 1 || filters.agent) && (
        <FilterSelect
          label="Agent"
          everything="All agents"
          value={filters.agent}
          choices={agents}
          onChange={(agent) => onChange({ agent })}
        />
      )}
      <FilterSelect
        label="Project"
        everything="All projects"
        value={filters.project}
        choices={projects}
        onChange={(project) => onChange({ project })}
      />
      <FilterSelect
        label="Model"
        everything="All models"
        value={filters.model}
        choices={models}
        onChange={(model) => onChange({ model })}
      />
      <span className="filter-branch">
        <FilterText label="Branch" placeholder="Branch" value={filters.branch} onChange={changeBranch} />
      </span>
      <FilterDates since={filters.since} until={filters.until} onChange={onChange} />
      <FilterSelect
        label="Sort"
        everything="Newest first"
        value={filters.sort}
        choices={SORTS}
        onChange={(sort) => onChange({ sort })}
      />
    </FilterBar>
  );
}

function useChoices() {
  const agents = useItems<AgentSummary>(AGENTS);
  const projects = useItems<ProjectSummary>(PROJECTS);
  const models = useItems<ModelSummary>(MODELS);
  return {
    agents: agents.map(({ agent }) => ({ value: agent, label: agentName(agent) })),
    projects: projects.map(({ path, name, sessions }) => ({
      value: path,
      label: `${name} (${formatCount(sessions)})`,
    })),
    models: models.map(({ name }) => ({ value: name, label: name })),
  };
}
