/** One session in a list: what it was about, where, and what it took. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { AnnotateButton, StarButton, TagLabels } from "@/annotations/annotations";
import { getJson } from "@/api/client";
import { SESSIONS, sessionPage } from "@/api/paths";
import type { SessionItem, SessionPage } from "@/api/types";
import { Icon } from "@/design/icon";
import { formatCount, plural } from "@/format/numbers";
import { formatDuration, formatExact, formatRelative, spanOf } from "@/format/time";
import { AgentLabel } from "./agent-label";
import { Cost, Tokens } from "./session-figures";
import { titleOf } from "./session-title";
import { StateBadge } from "./state-badge";

export function SessionRow({ session, now, depth = 0 }: { session: SessionItem; now: Date; depth?: number }) {
  const [open, setOpen] = useState(false);
  return (
    <li className="session-item" data-depth={depth || undefined}>
      <div className="session-row">
        <ChildrenToggle session={session} open={open} onToggle={() => setOpen(!open)} />
        <Link href={sessionPage(session.id)} className="session-link" data-item>
          <span className="session-title">
            <span className="session-name" dir="auto">
              {titleOf(session)}
            </span>
            <span className="session-tags">
              <TagLabels tags={session.annotations?.tags} />
            </span>
            <FirstPrompt session={session} />
          </span>
          <Places session={session} now={now} />
          <Figures session={session} now={now} />
        </Link>
        <span className="row-actions">
          <StarButton session={session} hasKey />
          <AnnotateButton session={session} hasKey />
        </span>
      </div>
      {open && <Children parent={session.id} now={now} depth={depth + 1} />}
    </li>
  );
}

const FIGURES = ["duration", "messages", "tokens", "cost", "active"];

/** The heading of a group; the first one also names the figures. */
export function SessionListHead({ title, labelled }: { title: string; labelled: boolean }) {
  return (
    <div className="session-head session-link">
      <h2>{title}</h2>
      {labelled &&
        FIGURES.map((figure) => (
          <span key={figure} className="session-figure" aria-hidden="true">
            {figure}
          </span>
        ))}
    </div>
  );
}

function ChildrenToggle({
  session,
  open,
  onToggle,
}: {
  session: SessionItem;
  open: boolean;
  onToggle: () => void;
}) {
  const count = session.children ?? 0;
  if (count === 0) return <span className="session-toggle" />;
  const label = `${plural(count, "subagent or fork", "subagents and forks")} of ${titleOf(session)}`;
  return (
    <button
      type="button"
      className="session-toggle"
      aria-expanded={open}
      aria-label={label}
      title={label}
      onClick={onToggle}
    >
      <Icon name={open ? "down" : "arrow"} size={13} />
      {formatCount(count)}
    </button>
  );
}

/** Where the title is not the prompt itself. */
function FirstPrompt({ session }: { session: SessionItem }) {
  const prompt = session.first_prompt?.replace(/\s+/g, " ").trim();
  if (!prompt || session.title_source === "prompt") return null;
  return <span className="session-prompt">{prompt}</span>;
}

function Places({ session, now }: { session: SessionItem; now: Date }) {
  const relationship = session.relationships?.[0]?.kind;
  return (
    <span className="session-places">
      <StateBadge session={session} now={now} />
      {relationship && <span className="session-kind">{relationship}</span>}
      <span>
        <AgentLabel agent={session.agent} />
      </span>
      {session.project && <span title={session.project.path}>{session.project.name}</span>}
      {session.worktree && <span title="Git worktree">{session.worktree}</span>}
      {session.git_branch && session.git_branch !== session.worktree && <span>{session.git_branch}</span>}
      {session.annotations?.archived && <span>archived</span>}
      {session.models && session.models.length > 0 && (
        <span className="session-model">{session.models.join(", ")}</span>
      )}
    </span>
  );
}

function Figures({ session, now }: { session: SessionItem; now: Date }) {
  const duration = spanOf(session.created_at, session.updated_at);
  const moment = session.updated_at ?? session.created_at;
  const messages = session.counts?.messages ?? 0;
  return (
    <>
      <span className="session-figures">
        <span className="session-figure">{duration === null ? "" : formatDuration(duration)}</span>
        <span className="session-figure">
          {formatCount(messages)}
          <span className="session-unit">{messages === 1 ? " message" : " messages"}</span>
        </span>
        <span className="session-figure">
          <Tokens session={session} />
          <span className="session-unit"> tokens</span>
        </span>
        <span className="session-figure">
          <Cost session={session} />
        </span>
      </span>
      <span className="session-figure session-when" title={moment && formatExact(moment)}>
        {moment ? formatRelative(moment, now) : "time unknown"}
      </span>
    </>
  );
}

function Children({ parent, now, depth }: { parent: string; now: Date; depth: number }) {
  const children = useQuery({
    queryKey: ["sessions", "children", parent],
    queryFn: ({ signal }) => getJson<SessionPage>(SESSIONS, { parent, sort: "created", limit: 200 }, signal),
  });
  if (children.isError) return <p className="session-note">Could not be loaded: {children.error.message}</p>;
  return (
    <ul className="session-children">
      {children.data?.items.map((session) => (
        <SessionRow key={session.id} session={session} now={now} depth={depth} />
      ))}
    </ul>
  );
}
