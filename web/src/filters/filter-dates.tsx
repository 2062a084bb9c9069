/** A span of days: a few usual ones, or two dates. */

import { dayKey } from "@/format/time";
import { FilterSelect } from "./filter-select";

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
