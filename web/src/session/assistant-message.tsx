/** One step of the model: reasoning, text and tool calls in the order it produced them. */

import { useMemo } from "react";
import type { Message, Part } from "@/api/types";
import { Icon } from "@/design/icon";
import type { MessageEntry } from "./entry";
import { MessageFrame } from "./message-frame";
import { CallGroup } from "./parts/call-group";
import { layOut, type PlacedPart } from "./parts/call-groups";
import { PartFrame } from "./parts/part-frame";
import { PartView } from "./parts/part-view";
import { Reasoning, UnrecordedReasoning } from "./parts/reasoning";

/** Parts that are one line: a step of nothing else needs no room around it. */
const QUIET: ReadonlySet<Part["type"]> = new Set(["tool-call", "reasoning", "data"]);

const NO_PARTS: Part[] = [];

export function AssistantMessage({ entry }: { entry: MessageEntry }) {
  const { message, placement } = entry;
  const parts = message.parts ?? NO_PARTS;
  const items = useMemo(() => layOut(parts, placement.results), [parts, placement.results]);
  const talks = parts.some((part) => !QUIET.has(part.type));
  return (
    <MessageFrame
      entry={entry}
      className={talks ? "answer talks" : "answer"}
      label={`Step${placement.step ? ` ${placement.step}` : ""}`}
    >
      {thoughtUnseen(message) && <UnrecordedReasoning tokens={message.usage?.reasoning ?? 0} />}
      {items.map((item, index) =>
        item.kind === "calls" ? (
          <CallGroup key={index} calls={item.calls} message={message} placement={placement} />
        ) : (
          <StepPart key={index} placed={item.item} message={message} />
        ),
      )}
      {message.error && (
        <p className="answer-error" role="note">
          <Icon name="cross" size={14} />
          {[message.error.status, message.error.kind, message.error.text].filter(Boolean).join(" · ")}
        </p>
      )}
      {parts.length === 0 && !message.error && <p className="answer-empty">An answer without content.</p>}
      <StopNote message={message} />
    </MessageFrame>
  );
}

function StepPart({ placed: { part, index }, message }: { placed: PlacedPart; message: Message }) {
  const place = { messageId: message.id, index };
  if (part.type === "reasoning") return <Reasoning part={part} place={place} />;
  return (
    <PartFrame place={place} className="part">
      <PartView part={part} />
    </PartFrame>
  );
}

/** The provider counted thinking that the log does not hold. */
function thoughtUnseen(message: Message): boolean {
  const recorded = (message.parts ?? []).some((part) => part.type === "reasoning");
  return !recorded && (message.usage?.reasoning ?? 0) > 0;
}

/** The ordinary ends of a step go without saying. */
const STOPS: Record<string, string> = {
  length: "Cut off: the limit of output tokens was reached",
  aborted: "Interrupted",
  refusal: "The model refused",
  context_window: "Cut off: the context window was full",
  content_filter: "Stopped by a content filter",
  pause: "Paused",
};

function StopNote({ message }: { message: Message }) {
  const stop = message.stop_reason && STOPS[message.stop_reason];
  return stop ? <p className="answer-stop">{stop}</p> : null;
}
