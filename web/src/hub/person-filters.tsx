/** Filters of a hub: whose sessions, and from which machine. On one's own machine there are none. */

import { type FilterProps, FilterSelect } from "@/filters/filters";
import { labelsOf } from "./names";
import { usePeople } from "./use-hub";

interface PersonFiltersProps {
  user: string;
  machine: string;
  onChange: (changes: { user?: string; machine?: string }) => void;
}

export function PersonFilters({ user, machine, onChange }: PersonFiltersProps) {
  const people = usePeople();
  const machines = new Set(people.filter(({ id }) => !user || id === user).flatMap((each) => each.machines));
  return (
    <>
      <Choice
        label="Person"
        everything="Everybody"
        value={user}
        choices={[...labelsOf(people)].map(([value, label]) => ({ value, label }))}
        // A machine is one person's, so it goes with the person.
        onChange={(chosen) => onChange({ user: chosen, machine: "" })}
      />
      <Choice
        label="Machine"
        everything="All machines"
        value={machine}
        choices={[...machines].sort().map((name) => ({ value: name, label: name }))}
        onChange={(chosen) => onChange({ machine: chosen })}
      />
    </>
  );
}

interface ChoiceProps extends FilterProps {
  label: string;
  everything: string;
  choices: { value: string; label: string }[];
}

function Choice(props: ChoiceProps) {
  if (props.choices.length < 2 && props.value === "") return null;
  return <FilterSelect {...props} />;
}
