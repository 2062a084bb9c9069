/** The filters of a list: a row of them, and one kind of field for each kind of value. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { AGENTS, MODELS, PROJECTS } from "@/api/paths";
import type { AgentItem, ModelSummary, ProjectSummary } from "@/api/types";
import { useItems } from "@/api/use-items";
import { Icon } from "@/design/icon";
import { dayKey } from "@/format/time";
import { projectLabels } from "./project-label";
import "./filters.css";

interface FilterBarProps {
  label: string;
  /** What is always in sight. */
  first?: ReactNode;
  /** How many of the others are set. */
  active: number;
  children: ReactNode;
}

/** Filters in a row. On a phone all but the first ones wait behind a button. */
export function FilterBar({ label, first, active, children }: FilterBarProps) {
  const [open, setOpen] = useState(false);
  return (
    <search className="filters" aria-label={label}>
      {first}
      <button
        type="button"
        className="button filters-toggle"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name="filter" size={14} /> {active > 0 ? `Filters (${active})` : "Filters"}
      </button>
      <div className="filters-rest" data-open={open || undefined}>
        {children}
      </div>
    </search>
  );
}

/** By agent. Not shown while there is nothing to choose between. */
export function AgentFilter({ value, onChange }: FilterProps) {
  const agents = useItems<AgentItem>(AGENTS);
  if (agents.length < 2 && value === "") return null;
  const choices = agents.map(({ agent, display_name }) => ({ value: agent, label: display_name }));
  return (
    <FilterSelect label="Agent" everything="All agents" value={value} choices={choices} onChange={onChange} />
  );
}

/** By project, the last used first. */
export function ProjectFilter({ value, onChange }: FilterProps) {
  const projects = useItems<ProjectSummary>(PROJECTS);
  const labels = projectLabels(projects);
  const choices = projects.map(({ path, name }) => ({ value: path, label: labels.get(path) ?? name }));
  return (
    <FilterSelect
      label="Project"
      everything="All projects"
      value={value}
      choices={choices}
      onChange={onChange}
    />
  );
}

/** By model, the most called first. */
export function ModelFilter({ value, onChange }: FilterProps) {
  const choices = useItems<ModelSummary>(MODELS).map(({ name }) => ({ value: name, label: name }));
  return (
    <FilterSelect label="Model" everything="All models" value={value} choices={choices} onChange={onChange} />
  );
}

interface FilterDatesProps {
  since: string;
  until: string;
  onChange: (span: { since: string; until: string }) => void;
}

const SPANS = [
  { days: 0, label: "Today" },
  { days: 6, label: "Last 7 days" },
  { days: 29, label: "Last 30 days" },
  { days: 89, label: "Last 90 days" },
];

const CUSTOM = "custom";

/** A span of days: a few usual ones, or two dates. */
export function FilterDates({ since, until, onChange }: FilterDatesProps) {
  const choices = SPANS.map(({ days, label }) => ({ value: daysAgo(days), label }));
  const usual = until === "" && choices.some((choice) => choice.value === since);
  const value = since === "" && until === "" ? "" : usual ? since : CUSTOM;
  return (
    <>
      <FilterSelect
        label="Date"
        everything="Any time"
        value={value}
        choices={[...choices, { value: CUSTOM, label: "From … to …" }]}
        onChange={(chosen) =>
          onChange({
            since: chosen === CUSTOM ? daysAgo(364) : chosen,
            until: chosen === CUSTOM ? daysAgo(0) : "",
          })
        }
      />
      {value === CUSTOM && (
        <span className="filter-span">
          <input
            type="date"
            className="field"
            aria-label="From"
            value={since}
            max={until || undefined}
            onChange={(event) => onChange({ since: event.target.value, until })}
          />
          <input
            type="date"
            className="field"
            aria-label="To"
            value={until}
            min={since || undefined}
            onChange={(event) => onChange({ since, until: event.target.value })}
          />
        </span>
      )}
    </>
  );
}

function daysAgo(days: number): string {
  const day = new Date();
  day.setDate(day.getDate() - days);
  return dayKey(day);
}

interface FilterTextProps {
  label: string;
  placeholder: string;
  value: string;
  onChange: (value: string) => void;
}

const PAUSE = 250;

/** A filter that is typed: applied when one pauses. */
export function FilterText({ label, placeholder, value, onChange }: FilterTextProps) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    // The address changed by other means (back, a link): follow it.
    if (value !== sent.current) {
      sent.current = value;
      setText(value);
    }
  }, [value]);
  useEffect(() => {
    const wanted = text.trim();
    if (wanted === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = wanted;
      onChange(wanted);
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [text, onChange]);
  return (
    <input
      type="search"
      className="field filter-text"
      aria-label={label}
      placeholder={placeholder}
      value={text}
      data-set={value !== "" || undefined}
      onChange={(event) => setText(event.target.value)}
    />
  );
}

export interface Choice {
  value: string;
  label: string;
}

interface FilterSelectProps {
  label: string;
  /** The option for no filter: "All projects". */
  everything: string;
  value: string;
  choices: Choice[];
  onChange: (value: string) => void;
}

/** A filter with a few known values. The browser's own select: works with keys, screen readers and thumbs. */
export function FilterSelect({ label, everything, value, choices, onChange }: FilterSelectProps) {
  const known = value === "" || choices.some((choice) => choice.value === value);
  return (
    <select
      className="field filter-select"
      aria-label={label}
      data-set={value !== "" || undefined}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">{everything}</option>
      {!known && <option value={value}>{value}</option>}
      {choices.map((choice) => (
        <option key={choice.value} value={choice.value}>
          {choice.label}
        </option>
      ))}
    </select>
  );
}

/** What every filter by one value takes; "" is no filter. */
export interface FilterProps {
  value: string;
  onChange: (value: string) => void;
}
