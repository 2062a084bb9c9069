/** What a search can be narrowed down to. */

import { TOOLS } from "@/api/paths";
import type { ToolUsage } from "@/api/types";
import { useItems } from "@/api/use-items";
import { AgentFilter, FilterBar, FilterDates, FilterSelect, ProjectFilter } from "@/filters/filters";
import { countSet } from "@/filters/url-filters";
import { PersonFilters } from "@/hub/person-filters";
import { SEARCH_FILTERS, type SearchFilters } from "./use-search";

interface SearchFiltersBarProps {
  filters: SearchFilters;
  onChange: (changes: Partial<SearchFilters>) => void;
}

const FIELDS = [
  { value: "text", label: "Text" },
  { value: "reasoning", label: "Thinking" },
  { value: "input", label: "Tool input" },
  { value: "output", label: "Tool output" },
  { value: "file", label: "File names" },
];

const ROLES = [
  { value: "user", label: "Prompts" },
  { value: "assistant", label: "Answers" },
  { value: "developer", label: "Injected context" },
  { value: "system", label: "System prompts" },
];

const OUTCOMES = [
  { value: "true", label: "Failed" },
  { value: "false", label: "Succeeded" },
];

const SORTS = [{ value: "newest", label: "Every hit, newest first" }];

export function SearchFiltersBar({ filters, onChange }: SearchFiltersBarProps) {
  const tools = useItems<ToolUsage>(TOOLS).map(({ tool_name }) => ({ value: tool_name, label: tool_name }));
  return (
    <FilterBar
      label="Search filters"
      active={countSet(filters, SEARCH_FILTERS) - countSet(filters, ["q", "until"])}
    >
      <FilterSelect
        label="Field"
        everything="Everywhere"
        value={filters.field}
        choices={FIELDS}
        onChange={(field) => onChange({ field })}
      />
      <FilterSelect
        label="Author"
        everything="Any author"
        value={filters.role}
        choices={ROLES}
        onChange={(role) => onChange({ role })}
      />
      <FilterSelect
        label="Tool"
        everything="Any tool"
        value={filters.tool}
        choices={tools}
        onChange={(tool) => onChange({ tool })}
      />
      <FilterSelect
        label="Outcome"
        everything="Any outcome"
        value={filters.failed}
        choices={OUTCOMES}
        onChange={(failed) => onChange({ failed })}
      />
      <AgentFilter value={filters.agent} onChange={(agent) => onChange({ agent })} />
      <PersonFilters user={filters.user} machine={filters.machine} onChange={onChange} />
      <ProjectFilter value={filters.project} onChange={(project) => onChange({ project })} />
      <FilterDates since={filters.since} until={filters.until} onChange={onChange} />
      <FilterSelect
        label="Sort"
        everything="Best match"
        value={filters.sort}
        choices={SORTS}
        onChange={(sort) => onChange({ sort })}
      />
      {filters.session && (
        <button type="button" className="button" onClick={() => onChange({ session: "" })}>
          In one session only ✕
        </button>
      )}
    </FilterBar>
  );
}
