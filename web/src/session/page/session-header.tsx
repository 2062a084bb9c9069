/** The header of a session: title, parent, facts, and the actions for the whole session. */

import { lazy, Suspense, useState } from "react";
import { Link } from "wouter";
import { AnnotateButton, AnnotationLine, StarButton } from "@/annotations/annotations";
import { sessionPage } from "@/api/paths";
import type { Session, SessionItem, SessionResponse } from "@/api/types";
import { Icon } from "@/design/icon";
import { titleOf } from "@/sessions/session-title";
import { BlockMenu } from "./block-menu";
import { ContinueMenu, ResumeMenu } from "./continue-menu";
import { SessionMenu } from "./session-menu";
import "./session-header.css";
import type { ReactNode } from "react";
import { formatCount, formatTotalCost, plural } from "@/format/numbers";
import { formatExact, formatRelative } from "@/format/time";
import { LEVELS } from "@/hub/level";
import { OwnerLabel, useOwnerName } from "@/hub/owner-label";
import { ShareButton } from "@/hub/share-button";
import { useIsHub, useIsOwn } from "@/hub/use-hub";
import type { Hidden } from "@/session/blocks";
import { nextAll, useAll, useDisclosures } from "@/session/disclosure";
import { AgentLabel } from "@/sessions/agent-label";
import { Cost, CostBesides, Duration, Tokens } from "@/sessions/session-figures";
import { StateBadge } from "@/sessions/state-badge";
import { useClock } from "@/sessions/use-clock";
import { useSessionState } from "./prompt";

const NOT_LIVE = "The server cannot be reached. Missed changes are loaded when it is back.";

interface SessionHeaderProps {
  answer: SessionResponse | undefined;
  /** Whether what the agent writes now would be seen. */
  live: boolean;
  /** Whether the server starts agents. */
  prompts: boolean;
  hidden: Hidden;
  onHide: (hidden: Hidden) => void;
  onReplay: () => void;
  onFind: () => void;
  onOutline: () => void;
}

export function SessionHeader(props: SessionHeaderProps) {
  const { answer, live, prompts, hidden, onHide, onReplay, onFind, onOutline } = props;
  const isOwn = useIsOwn(answer?.session);
  const isHub = useIsHub();
  return (
    <header className="session-header">
      <div className="session-header-top">
        <Back answer={answer} />
        <div className="session-heading">
          <h1 dir="auto" title={answer && titleOf(answer.session)}>
            {answer ? titleOf(answer.session) : "\u00a0"}
          </h1>
          {answer && !live && (
            <span className="not-live" title={NOT_LIVE}>
              not live
            </span>
          )}
        </div>
        <div className="session-actions" data-waiting={!answer || undefined}>
          {answer && isOwn && <StarButton session={answer.session} />}
          {answer && isOwn && <AnnotateButton session={answer.session} />}
          <button type="button" className="button outline-button" onClick={onOutline} title="Outline">
            <Icon name="list" size={14} /> <span>Outline</span>
          </button>
          <BlockMenu hidden={hidden} onChange={onHide} />
          <AllButton />
          <button type="button" className="button" onClick={onFind} title="Find in this session (f)">
            <Icon name="search" size={14} /> <span>Find</span>
          </button>
          <button type="button" className="button" onClick={onReplay} title="Replay this session (R)">
            <Icon name="play" size={14} /> <span>Replay</span>
          </button>
          {answer && <ResumeMenu session={answer.session} />}
          {answer && !isHub && <ContinueMenu session={answer.session} prompts={prompts} />}
          {answer && <ShareButton session={answer.session} />}
          {answer && <SessionMenu session={answer.session} isOwn={isOwn} />}
        </div>
      </div>
      {answer && (
        <div className="session-facts-line">
          <SessionFacts session={answer.session} live={live}>
            <Origin answer={answer} />
          </SessionFacts>
          <SessionTotals session={answer.session} />
        </div>
      )}
      {answer && <AnnotationLine session={answer.session} />}
    </header>
  );
}

/** A link back: to the call in the parent session that started this one, or to the list. */
function Back({ answer }: { answer: SessionResponse | undefined }) {
  const parent = answer?.parent;
  return (
    <Link
      href={parent ? parentPage(answer.session, parent) : "/"}
      className="session-back"
      aria-label={parent ? "Back to the parent session" : "Back to all sessions"}
    >
      <Icon name="back" />
    </Link>
  );
}

const RELATIONSHIPS = {
  subagent: "Subagent of",
  fork: "Fork of",
  continuation: "Continues",
};

function Origin({ answer: { session, parent } }: { answer: SessionResponse }) {
  if (!parent) return null;
  return (
    <li>
      <Link href={parentPage(session, parent)} className="session-parent">
        {RELATIONSHIPS[session.relationships?.[0]?.kind ?? "subagent"]} {titleOf(parent)}
      </Link>
    </li>
  );
}

function parentPage(session: Session, parent: Session): string {
  return sessionPage(parent.id, session.relationships?.[0]?.parent_message_id);
}

// With the code of charts: loaded when it is opened.
const ContextGrowth = lazy(() => import("./context-growth"));

interface SessionFactsProps {
  session: SessionItem;
  /** Whether what the agent writes now would be seen. */
  live: boolean;
  /** More facts, after what it is doing. */
  children: ReactNode;
}

/** What the session is and where, in one line that scrolls where even a line of its own is too short. */
export function SessionFacts({ session, live, children }: SessionFactsProps) {
  useClock();
  const now = new Date();
  const state = useSessionState(session);
  const owner = useOwnerName(session);
  const counts = session.counts ?? {};
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
      {owner && (
        <li>
          <OwnerLabel session={session} />
        </li>
      )}
      {session.upload_level && (
        <li title={`Its machine sent ${LEVELS[session.upload_level]}.`}>
          upload level {session.upload_level}
        </li>
      )}
      {session.project && <li title={session.project.path}>{session.project.name}</li>}
      {session.worktree && <li title="Git worktree">{session.worktree}</li>}
      {session.git_branch && session.git_branch !== session.worktree && (
        <li>
          <Icon name="branch" size={13} /> {session.git_branch}
        </li>
      )}
      <li title={session.models?.join(", ")}>{session.models?.join(", ") || "model unknown"}</li>
      {session.created_at && (
        <li title={formatExact(session.created_at)}>{formatRelative(session.created_at, now)}</li>
      )}
      <li>
        <Duration session={session} />
      </li>
      {counts.prompts && <li>{plural(counts.prompts, "prompt")}</li>}
      <li>{plural(counts.messages ?? 0, "message")}</li>
    </ul>
  );
}

/** What the session took, and what failed in it. It stands outside of the line that scrolls: seen at every width. */
function SessionTotals({ session }: { session: SessionItem }) {
  const [growth, setGrowth] = useState(false);
  const { tool_calls: calls = 0, failed_tool_calls: failed = 0 } = session.counts ?? {};
  return (
    <ul className="session-totals" aria-label="Calls, tokens and cost">
      <li>
        {plural(calls, "tool call")}
        {failed > 0 && `, ${formatCount(failed)} failed`}
      </li>
      <li>
        <button type="button" className="session-tokens" onClick={() => setGrowth(true)}>
          <Tokens session={session} /> tokens
          <span className="visually-hidden">, show how the context grew</span>
        </button>
        {growth && (
          <Suspense fallback={null}>
            <ContextGrowth id={session.id} onClose={() => setGrowth(false)} />
          </Suspense>
        )}
      </li>
      <li>
        <Cost session={session} />
        <CostBesides session={session} />
      </li>
      {session.cost && session.reported_cost && (
        <li title="As reported by the agent; it may include calls that are in no log">
          reported {formatTotalCost(Number(session.reported_cost.amount), 0)}
        </li>
      )}
    </ul>
  );
}

/** Opens everything, then folds everything, then leaves each as it is by itself. */
export function AllButton() {
  const disclosures = useDisclosures();
  const next = nextAll(useAll());
  return (
    <button
      type="button"
      className="button"
      onClick={() => disclosures.setAll(next.all)}
      title={`${next.label} (x)`}
    >
      <Icon name="expand" size={14} /> <span>{next.label}</span>
    </button>
  );
}
