/** What the session is: its title and the facts people ask for first. */

import { Link } from "wouter";
import { sessionPage } from "@/api/paths";
import type { Session, SessionAnswer } from "@/api/types";
import { CopyButton } from "@/design/copy-button";
import { Icon } from "@/design/icon";
import { formatCount, formatTotalCost, plural } from "@/format/numbers";
import { formatDuration, formatExact, formatRelative, spanOf } from "@/format/time";
import { agentName } from "@/sessions/agent-name";
import { Cost, Tokens } from "@/sessions/session-figures";
import { titleOf } from "@/sessions/session-title";
import "./session-header.css";

interface SessionHeaderProps {
  answer: SessionAnswer;
  onOutline: () => void;
  allOpen: boolean;
  onToggleAll: () => void;
}

export function SessionHeader({ answer, onOutline, allOpen, onToggleAll }: SessionHeaderProps) {
  const { session, parent } = answer;
  return (
    <header className="session-header">
      <div className="session-header-top">
        <Link
          href={parent ? sessionPage(parent.id, parentAnchor(session)) : "/"}
          className="session-back"
          aria-label={parent ? "Back to the parent session" : "Back to all sessions"}
        >
          <Icon name="back" />
        </Link>
        <div className="session-heading">
          {parent && (
            <Link href={sessionPage(parent.id, parentAnchor(session))} className="session-parent">
              {RELATIONSHIPS[session.relationships?.[0]?.kind ?? "subagent"]} {titleOf(parent)}
            </Link>
          )}
          <h1 title={titleOf(session)}>{titleOf(session)}</h1>
        </div>
        <div className="session-actions">
          <button type="button" className="button outline-button" onClick={onOutline}>
            <Icon name="list" size={14} /> <span>Outline</span>
          </button>
          <button type="button" className="button" onClick={onToggleAll} title="Key: x">
            <Icon name="expand" size={14} /> <span>{allOpen ? "Fold all" : "Open all"}</span>
          </button>
          <Link href={`/search?session=${encodeURIComponent(session.id)}`} className="button">
            <Icon name="search" size={14} /> <span>Search in it</span>
          </Link>
          <CopyButton label="Copy link" text={() => location.origin + sessionPage(session.id)} />
        </div>
      </div>
      <Facts session={session} />
    </header>
  );
}

const RELATIONSHIPS = {
  subagent: "Subagent of",
  fork: "Fork of",
  continuation: "Continues",
};

function parentAnchor(session: Session): string | undefined {
  return session.relationships?.[0]?.parent_message_id;
}

function Facts({ session }: { session: Session }) {
  const counts = session.counts ?? {};
  const duration = spanOf(session.created_at, session.updated_at);
  return (
    <ul className="session-facts">
      <li>
        {agentName(session.agent)} {session.agent_version}
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
          {formatRelative(session.created_at, new Date())}
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
