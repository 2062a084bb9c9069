/** The name of an agent with its colour, so that a list can be scanned for it. */

import { useAgents } from "./use-agents";
import "./agent-label.css";

export function AgentLabel({ agent, version }: { agent: string; version?: string | undefined }) {
  const { name, colour } = useAgents()(agent);
  const mark = colour ? { background: `light-dark(${colour.light}, ${colour.dark})` } : {};
  return (
    <span className="agent-label">
      <span className="agent-mark" style={mark} />
      {name}
      {version && ` ${version}`}
    </span>
  );
}
