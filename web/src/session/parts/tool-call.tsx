/** A tool call: one line that opens to its real input and everything that came back. */

import { Link } from "wouter";
import { sessionPage } from "@/api/paths";
import type { Message, Placement, ToolCallPart } from "@/api/types";
import { Icon } from "@/design/icon";
import { formatDuration } from "@/format/time";
import { useDisclosure } from "../disclosure";
import { useLinked, useSessionContext } from "../session-context";
import { KIND_ICONS } from "./kind-icon";
import { disclosureId, PartFrame } from "./part-frame";
import "./tool-call.css";
import { ToolPanel } from "./tool-panel";
import { durationOf, stateLabel } from "./tool-state";
import { summarize } from "./tool-summary";

interface ToolCallProps {
  part: ToolCallPart;
  message: Message;
  placement: Placement;
  index: number;
}

export function ToolCall({ part, message, placement, index }: ToolCallProps) {
  const { cwd } = useSessionContext();
  const place = { messageId: message.id, index };
  const { linked } = useLinked(message.id, index);
  const [open, toggle] = useDisclosure(disclosureId(place), linked);
  const { name, argument } = summarize(part, cwd);
  const child = placement.children[part.tool_call_id] ?? part.child_session_id;
  return (
    <PartFrame place={place} className="tool">
      <div className="tool-line">
        <button type="button" className="tool-row" aria-expanded={open} onClick={toggle} data-toggle>
          <Icon name={KIND_ICONS[part.kind ?? "other"]} />
          <span className="tool-name">{name}</span>
          <span className="tool-argument">{argument}</span>
          <CallState part={part} calledAt={message.completed_at ?? message.created_at} />
        </button>
        {child && (
          <Link href={sessionPage(child)} className="tool-child">
            Open subagent <Icon name="arrow" size={12} />
          </Link>
        )}
      </div>
      {open && <ToolPanel part={part} message={message} />}
    </PartFrame>
  );
}

function CallState({ part, calledAt }: { part: ToolCallPart; calledAt: string | undefined }) {
  const state = stateLabel(part);
  const duration = durationOf(part, calledAt);
  return (
    <span className={`tool-state tone-${state.tone}`}>
      {duration !== null && <span className="tool-duration">{formatDuration(duration)}</span>}
      <span className={state.tone === "quiet" ? "visually-hidden" : undefined}>{state.text}</span>
      <Icon name={state.icon} size={14} />
    </span>
  );
}
