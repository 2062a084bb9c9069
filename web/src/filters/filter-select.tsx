/** A filter with a few known values. The browser's own select: works with keys, screen readers and thumbs. */

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
