/** Filters in a row. On a phone all but the first ones wait behind a button. */

import { type ReactNode, useState } from "react";
import { Icon } from "@/design/icon";
import "./filters.css";

interface FilterBarProps {
  label: string;
  /** What is always in sight. */
  first?: ReactNode;
  /** How many of the others are set. */
  active: number;
  children: ReactNode;
}

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
