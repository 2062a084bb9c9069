/** What the session is, where it came from, and what can be done with all of it. */

import { Link } from "wouter";
import { AnnotateButton } from "@/annotations/annotate-button";
import { Said } from "@/annotations/said";
import { StarButton } from "@/annotations/star-button";
import { sessionPage } from "@/api/paths";
import type { Session, SessionAnswer } from "@/api/types";
import { Icon } from "@/design/icon";
import { titleOf } from "@/sessions/session-title";
import { AllButton } from "./all-button";
import { SessionFacts } from "./session-facts";
import { SessionMenu } from "./session-menu";
import "./session-header.css";

const NOT_LIVE = "The server cannot be reached just now; what is missed comes when it is back";

interface SessionHeaderProps {
  answer: SessionAnswer | undefined;
  /** Whether what the agent writes now would be seen. */
  live: boolean;
  onReplay: () => void;
  onFind: () => void;
  onOutline: () => void;
}

export function SessionHeader({ answer, live, onReplay, onFind, onOutline }: SessionHeaderProps) {
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
          {answer && <StarButton session={answer.session} />}
          {answer && <AnnotateButton session={answer.session} />}
          <button type="button" className="button outline-button" onClick={onOutline}>
            <Icon name="list" size={14} /> <span>Outline</span>
          </button>
          <AllButton />
          <button type="button" className="button" onClick={onFind} title="Key: f">
            <Icon name="search" size={14} /> <span>Find</span>
          </button>
          <button type="button" className="button" onClick={onReplay}>
            <Icon name="play" size={14} /> <span>Replay</span>
          </button>
          {answer && <SessionMenu session={answer.session} />}
        </div>
      </div>
      {answer && (
        <SessionFacts session={answer.session} live={live}>
          <Origin answer={answer} />
        </SessionFacts>
      )}
      {answer && <Said session={answer.session} />}
    </header>
  );
}

/** Back to where the session came from: the very call in its parent, or the list. */
function Back({ answer }: { answer: SessionAnswer | undefined }) {
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

function Origin({ answer: { session, parent } }: { answer: SessionAnswer }) {
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
