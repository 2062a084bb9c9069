/** How agents are shown: what each is called, and the colour of its mark, come from the server. */

import { AGENTS } from "@/api/paths";
import type { AgentColour, AgentItem } from "@/api/types";
import { useItems } from "@/api/use-items";

export interface AgentLook {
  name: string;
  /** Null where nobody has chosen one: the mark is neutral. */
  colour: AgentColour | null;
}

/** Agent -> how it is shown; one that the server does not describe goes by its own name. */
export function useAgents(): (agent: string) => AgentLook {
  const agents = useItems<AgentItem>(AGENTS);
  return (agent) => lookOf(agents, agent);
}

export function lookOf(agents: AgentItem[], agent: string): AgentLook {
  const known = agents.find((each) => each.agent === agent);
  return { name: known?.display_name ?? agent, colour: known?.colour ?? null };
}
