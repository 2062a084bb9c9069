/** What the list can be narrowed down to, and its order. */

import { useCallback } from "react";
import { Icon, type IconName } from "@/design/icon";
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
import { PersonFilters } from "@/hub/person-filters";
import { hourLabel } from "./hour-of-week";
import { SORTS } from "./session-groups";
import type { SessionFilters } from "./use-sessions";

const HAVING = "having:";

/** Which are shown; what they have had is another filter of the server, and shares this field. */
const SHOWN = [
  { value: "starred", label: "Starred" },
  { value: "archived", label: "Archived" },
  { value: `${HAVING}failed-call`, label: "Failed calls" },
  { value: `${HAVING}error`, label: "Errors" },
  { value: `${HAVING}compaction`, label: "Compactions" },
  { value: `${HAVING}subagent`, label: "Subagents" },
];

function changesOf(shown: string): Partial<SessionFilters> {
  return shown.startsWith(HAVING)
    ? { show: "", having: shown.slice(HAVING.length) }
    : { show: shown, having: "" };
}

const STATUSES = ["Running", "Waiting", "Done", "Failed", "Stopped", "Killed", "Idle"].map((label) => ({
  value: label.toLowerCase(),
  label,
}));

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
      active={countSet(filters, [
        "agent",
        "project",
        "model",
        "branch",
        "user",
        "machine",
        "since",
        "show",
        "status",
        "tag",
        "having",
        "hour",
        "sort",
      ])}
    >
      <AgentFilter value={filters.agent} onChange={(agent) => onChange({ agent })} />
      <PersonFilters user={filters.user} machine={filters.machine} onChange={onChange} />
      <ProjectFilter value={filters.project} onChange={(project) => onChange({ project })} />
      <ModelFilter value={filters.model} onChange={(model) => onChange({ model })} />
      <span className="filter-branch">
        <FilterText label="Branch" placeholder="Branch" value={filters.branch} onChange={changeBranch} />
      </span>
      <FilterSelect
        label="Show"
        everything="Not archived"
        value={filters.having ? HAVING + filters.having : filters.show}
        choices={SHOWN}
        onChange={(shown) => onChange(changesOf(shown))}
      />
      <FilterSelect
        label="Status"
        everything="Any status"
        value={filters.status}
        choices={STATUSES}
        onChange={(status) => onChange({ status })}
      />
      <Narrowing icon="tag" label={filters.tag} onEnd={() => onChange({ tag: "" })} />
      <Narrowing
        icon="filter"
        label={filters.hour && hourLabel(filters.hour)}
        onEnd={() => onChange({ hour: "" })}
      />
      <span className="filter-pair">
        <FilterDates since={filters.since} until={filters.until} onChange={onChange} />
        <FilterSelect
          label="Sort"
          everything="Newest first"
          value={filters.sort}
          choices={SORTS}
          onChange={(sort) => onChange({ sort })}
        />
      </span>
    </FilterBar>
  );
}

/** A filter that a link has set: it can only be ended here. */
function Narrowing({ icon, label, onEnd }: { icon: IconName; label: string; onEnd: () => void }) {
  if (!label) return null;
  return (
    <button type="button" className="button" onClick={onEnd} title="Show all others again">
      <Icon name={icon} size={14} /> {label} <Icon name="cross" size={12} />
    </button>
  );
}
