/** By agent. Not shown while there is nothing to choose between. */

import { AGENTS } from "@/api/paths";
import type { AgentItem } from "@/api/types";
import { useItems } from "@/api/use-items";
import type { FilterProps } from "./filter-props";
import { FilterSelect } from "./filter-select";

export function AgentFilter({ value, onChange }: FilterProps) {
  const agents = useItems<AgentItem>(AGENTS);
  if (agents.length < 2 && value === "") return null;
  const choices = agents.map(({ agent, display_name }) => ({ value: agent, label: display_name }));
  return (
    <FilterSelect label="Agent" everything="All agents" value={value} choices={choices} onChange={onChange} />
  );
}
