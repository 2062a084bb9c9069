/** What the list can be narrowed down to, and its order. */

import { useCallback } from "react";
import { Icon } from "@/design/icon";
import {
  AgentFilter,
  FilterBar,
  FilterDates,
  FilterSelect,
  FilterText,
  ModelFilter,
  ProjectFilter,
} from "@/filters/filters";
import { countSet } from "@/filters/url-filters";
import { SORTS } from "./session-groups";
import type { SessionFilters } from "./use-sessions";

const SHOWN = [
  { value: "starred", label: "Starred" },
  { value: "archived", label: "Archived" },
];

interface SessionFiltersBarProps {
  filters: SessionFilters;
  onChange: (changes: Partial<SessionFilters>) => void;
}

export function SessionFiltersBar({ filters, onChange }: SessionFiltersBarProps) {
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
      active={countSet(filters, ["agent", "project", "model", "branch", "since", "show", "tag", "sort"])}
    >
      <AgentFilter value={filters.agent} onChange={(agent) => onChange({ agent })} />
      <ProjectFilter value={filters.project} onChange={(project) => onChange({ project })} />
      <ModelFilter value={filters.model} onChange={(model) => onChange({ model })} />
      <span className="filter-branch">
        <FilterText label="Branch" placeholder="Branch" value={filters.branch} onChange={changeBranch} />
      </span>
      <FilterSelect
        label="Show"
        everything="Not archived"
        value={filters.show}
        choices={SHOWN}
        onChange={(show) => onChange({ show })}
      />
      {filters.tag && (
        <button type="button" className="button" onClick={() => onChange({ tag: "" })}>
          <Icon name="tag" size={14} /> {filters.tag} <Icon name="cross" size={12} />
        </button>
      )}
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
