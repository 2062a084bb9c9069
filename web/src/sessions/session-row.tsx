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
import { formatClock, formatExact, formatRelative } from "@/format/time";
import { LevelLabel } from "@/hub/level";
import { OwnerLabel } from "@/hub/owner-label";
import { useIsOwn } from "@/hub/use-hub";
import { AgentLabel } from "./agent-label";
import { useSelection } from "./selection";
import { Cost, Duration, Tokens } from "./session-figures";
import { titleOf } from "./session-title";
import { StateBadge } from "./state-badge";

interface SessionRowProps {
  session: SessionItem;
  now: Date;
  depth?: number;
  /** Sessions that this one continues, the newest first: folded under it. */
  earlier?: SessionItem[] | undefined;
  /** The moment whose time of day is shown, under a heading that says the day. */
  clock?: string | undefined;
}

const NONE: SessionItem[] = [];

export function SessionRow({ session, now, depth = 0, earlier = NONE, clock }: SessionRowProps) {
  const [open, setOpen] = useState(false);
  const isOwn = useIsOwn(session);
  return (
    <li className="session-item" data-depth={depth || undefined}>
      <div className="session-row">
        <SelectBox session={session} />
        <FoldToggle session={session} earlier={earlier.length} open={open} onToggle={() => setOpen(!open)} />
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
          <Places session={session} now={now} earlier={earlier.length} />
          <Figures session={session} now={now} clock={clock} />
        </Link>
        <span className="row-actions">
          {isOwn && <StarButton session={session} hasKey />}
          {isOwn && <AnnotateButton session={session} hasKey />}
        </span>
      </div>
      {open && earlier.length > 0 && (
        <ul className="session-children" aria-label="Earlier sessions">
          {earlier.map((each) => (
            <SessionRow key={each.id} session={each} now={now} depth={depth + 1} />
          ))}
        </ul>
      )}
      {open && (session.children ?? 0) > 0 && <Children parent={session.id} now={now} depth={depth + 1} />}
    </li>
  );
}

const FIGURES = ["active time", "messages", "tokens", "cost", "updated"];

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

/** Only while sessions are being selected. */
function SelectBox({ session }: { session: SessionItem }) {
  const selection = useSelection();
  if (!selection) return null;
  return (
    <input
      type="checkbox"
      className="session-select"
      aria-label={`Select ${titleOf(session)}`}
      title="Select (x)"
      data-key="x"
      checked={selection.ids.has(session.id)}
      onChange={() => selection.toggle(session.id)}
    />
  );
}

interface FoldToggleProps {
  session: SessionItem;
  /** How many earlier sessions are folded under it. */
  earlier: number;
  open: boolean;
  onToggle: () => void;
}

function FoldToggle({ session, earlier, open, onToggle }: FoldToggleProps) {
  const children = session.children ?? 0;
  const count = earlier + children;
  if (count === 0) return <span className="session-toggle" />;
  const folded = [
    earlier > 0 && plural(earlier, "earlier session"),
    children > 0 && plural(children, "subagent or fork", "subagents and forks"),
  ].filter(Boolean);
  // The name contains the number that is shown, so that it can be said to a program that listens.
  const sum = folded.length > 1 ? `${plural(count, "session")}: ` : "";
  const label = `${sum}${folded.join(", ")} of ${titleOf(session)}`;
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
  if (!prompt || session.title_source === "prompt" || prompt.startsWith(titleOf(session))) return null;
  return <span className="session-prompt">{prompt}</span>;
}

function Places({ session, now, earlier }: { session: SessionItem; now: Date; earlier: number }) {
  const kind = session.relationships?.[0]?.kind;
  const relationship = earlier > 0 ? `continues ${plural(earlier, "earlier session")}` : kind;
  return (
    <span className="session-places">
      <StateBadge session={session} now={now} />
      {relationship && <span className="session-kind">{relationship}</span>}
      <span>
        <AgentLabel agent={session.agent} />
      </span>
      <OwnerLabel session={session} />
      <LevelLabel session={session} />
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

interface FiguresProps {
  session: SessionItem;
  now: Date;
  clock: string | undefined;
}

function Figures({ session, now, clock }: FiguresProps) {
  const moment = clock ?? session.updated_at ?? session.created_at;
  const messages = session.counts?.messages ?? 0;
  return (
    <>
      <span className="session-figures">
        <span className="session-figure">
          <Duration session={session} />
        </span>
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
        {whenOf(moment, clock, now)}
      </span>
    </>
  );
}

function whenOf(moment: string | undefined, clock: string | undefined, now: Date): string {
  if (clock) return formatClock(clock);
  return moment ? formatRelative(moment, now) : "time unknown";
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
