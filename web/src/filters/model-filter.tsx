/** By model, the most called first. */

import { MODELS } from "@/api/paths";
import type { ModelSummary } from "@/api/types";
import { useItems } from "@/api/use-items";
import type { FilterProps } from "./filter-props";
import { FilterSelect } from "./filter-select";

export function ModelFilter({ value, onChange }: FilterProps) {
  const choices = useItems<ModelSummary>(MODELS).map(({ name }) => ({ value: name, label: name }));
  return (
    <FilterSelect label="Model" everything="All models" value={value} choices={choices} onChange={onChange} />
  );
}
