/** The facts of a session that people ask for first, in one line. */

import type { ReactNode } from "react";
import type { SessionItem } from "@/api/types";
import { Icon } from "@/design/icon";
import { formatCount, formatTotalCost, plural } from "@/format/numbers";
import { formatDuration, formatExact, formatRelative, spanOf } from "@/format/time";
import { AgentLabel } from "@/sessions/agent-label";
import { Cost, Tokens } from "@/sessions/session-figures";
import { StateBadge } from "@/sessions/state-badge";
import { useClock } from "@/sessions/use-clock";
import { useSessionState } from "./use-session-state";

interface SessionFactsProps {
  session: SessionItem;
  /** Whether what the agent writes now would be seen. */
  live: boolean;
  /** More facts, after what it is doing. */
  children: ReactNode;
}

export function SessionFacts({ session, live, children }: SessionFactsProps) {
  useClock();
  const now = new Date();
  const state = useSessionState(session);
  const counts = session.counts ?? {};
  const duration = spanOf(session.created_at, session.updated_at);
  return (
    <ul className="session-facts" tabIndex={0} aria-label="About this session" data-live={live}>
      {state && (
        <li>
          <StateBadge session={{ ...session, state }} now={now} always />
        </li>
      )}
      {children}
      <li>
        <AgentLabel agent={session.agent} version={session.agent_version} />
      </li>
      {session.project && <li title={session.project.path}>{session.project.name}</li>}
      {session.git_branch && (
        <li>
          <Icon name="branch" size={13} /> {session.git_branch}
        </li>
      )}
      <li title={session.models?.join(", ")}>{session.models?.join(", ") || "model unknown"}</li>
      {session.created_at && (
        <li title={formatExact(session.created_at)}>
          {formatRelative(session.created_at, now)}
          {duration !== null && `, ${formatDuration(duration)}`}
        </li>
      )}
      {counts.prompts && <li>{plural(counts.prompts, "prompt")}</li>}
      <li>{plural(counts.messages ?? 0, "message")}</li>
      <li>
        {plural(counts.tool_calls ?? 0, "tool call")}
        {counts.failed_tool_calls ? `, ${formatCount(counts.failed_tool_calls)} failed` : ""}
      </li>
      <li>
        <Tokens session={session} /> tokens
      </li>
      <li>
        <Cost session={session} />
      </li>
      {session.reported_cost && (
        <li title="As the agent itself reported it; it may contain calls that no log shows">
          reported {formatTotalCost(Number(session.reported_cost.amount), 0)}
        </li>
      )}
    </ul>
  );
}
