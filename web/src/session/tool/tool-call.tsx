/** A tool call: one line, a glance at its outcome, and everything when it is opened. */

import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "wouter";
import { getJson } from "@/api/client";
import { sessionPage, sessionPath } from "@/api/paths";
import type { Message, MessageRow, SessionResponse, ToolCallPart } from "@/api/types";
import type { FileChange } from "@/content/patches";
import { Icon } from "@/design/icon";
import { isMissing } from "@/design/problem";
import { formatDuration } from "@/format/time";
import { useDisclosure, useGlances } from "@/session/disclosure";
import { disclosureId, PartFrame } from "@/session/message/part-frame";
import { useLinked, useSessionContext } from "@/session/session-context";
import { ChangeFigure } from "./change-view";
import { durationOf, figureOf, KIND_ICONS, stateLabel, summarize } from "./tool-summary";
import "./tool-call.css";
import { changesOf } from "./tool-changes";
import { ToolGlance } from "./tool-glance";
import { ToolPanel } from "./tool-panel";

interface ToolCallProps {
  part: ToolCallPart;
  message: Message;
  placement: MessageRow;
  index: number;
}

export function ToolCall({ part, message, placement, index }: ToolCallProps) {
  const place = { messageId: message.id, index };
  const { linked } = useLinked(message.id, index);
  const [open, toggle] = useDisclosure(disclosureId(place), linked);
  const glances = useGlances();
  const changes = useMemo(() => (part.kind === "edit" ? changesOf(part) : []), [part]);
  const started = placement.children[part.tool_call_id] ?? part.child_session_id ?? null;
  const isStored = useIsStored(started);
  const child = isStored ? started : null;
  return (
    <PartFrame place={place} className={open ? "tool tool-open" : "tool"} callId={part.tool_call_id}>
      <div className="tool-line">
        <button type="button" className="tool-row" aria-expanded={open} onClick={toggle} data-toggle>
          <Icon name={KIND_ICONS[part.kind ?? "other"]} />
          <CallName part={part} />
          <CallFigures part={part} changes={changes} calledAt={message.completed_at ?? message.created_at} />
        </button>
        {child && (
          <Link href={sessionPage(child)} className="tool-child">
            Open subagent <Icon name="arrow" size={12} />
          </Link>
        )}
        {isStored === false && (
          <span className="tool-child-missing" title="turnlog has found no log of this subagent">
            Subagent not stored
          </span>
        )}
      </div>
      {open && <ToolPanel part={part} messageId={message.id} index={index} child={child} />}
      {!open && glances && <ToolGlance part={part} changes={changes} onMore={toggle} />}
    </PartFrame>
  );
}

/** Whether the session that a call started is in the store; null until that is known, and without one. */
function useIsStored(id: string | null): boolean | null {
  const { subagents, knowsSubagents } = useSessionContext();
  const isKnown = id !== null && subagents.has(id);
  const answer = useQuery({
    queryKey: ["child", id, "stored"],
    queryFn: ({ signal }) => getJson<SessionResponse>(sessionPath(id ?? ""), {}, signal),
    enabled: id !== null && !isKnown && knowsSubagents === false,
  });
  if (isKnown || answer.data) return true;
  if (id !== null && knowsSubagents) return false;
  return answer.error && isMissing(answer.error) ? false : null;
}

function CallName({ part }: { part: ToolCallPart }) {
  const { cwd } = useSessionContext();
  const { name, server, argument } = useMemo(() => summarize(part, cwd), [part, cwd]);
  return (
    <>
      <span className="tool-name">{name}</span>
      {server && (
        <span className="chip tool-server" title={`${server}: server of the tool (Model Context Protocol)`}>
          {server}
        </span>
      )}
      <span className="tool-argument">{argument}</span>
    </>
  );
}

interface CallFiguresProps {
  part: ToolCallPart;
  changes: FileChange[];
  calledAt: string | undefined;
}

function CallFigures({ part, changes, calledAt }: CallFiguresProps) {
  const { running } = useSessionContext();
  const state = stateLabel(part, part.tool_call_id === running);
  const duration = durationOf(part, calledAt);
  const figure = useMemo(() => figureOf(part), [part]);
  return (
    <span className={`tool-state tone-${state.tone}`}>
      {changes.length > 0 && <ChangeFigure changes={changes} />}
      {figure && <span className="tool-figure">{figure}</span>}
      {part.approval?.approved && /user/.test(part.approval.source ?? "") && (
        <span className="chip">approved</span>
      )}
      {duration !== null && <span className="tool-duration">{formatDuration(duration)}</span>}
      <span className={state.tone === "quiet" ? "visually-hidden" : undefined}>{state.text}</span>
      <Icon name={state.icon} size={14} />
    </span>
  );
}
