/** The name of an agent with its colour, so that a list can be scanned for it. */

import { agentName } from "./agent-name";
import "./agent-label.css";

export function AgentLabel({ agent, version }: { agent: string; version?: string | undefined }) {
  return (
    <span className="agent-label">
      <span className="agent-mark" data-agent={agent} />
      {agentName(agent)}
      {version && ` ${version}`}
    </span>
  );
}
