/** One step of the model: reasoning, text and tool calls in the order it produced them. */

import type { Message, Part, Placement } from "@/api/types";
import { Icon } from "@/design/icon";
import type { MessageEntry } from "./entries";
import { MessageFrame } from "./message-frame";
import { PartFrame } from "./parts/part-frame";
import { PartView } from "./parts/part-view";
import { Reasoning } from "./parts/reasoning";
import { ToolCall } from "./parts/tool-call";

export function AssistantMessage({ entry }: { entry: MessageEntry }) {
  const { message, placement } = entry;
  const parts = message.parts ?? [];
  const talks = parts.some((part) => part.type !== "tool-call" && part.type !== "reasoning");
  return (
    <MessageFrame
      entry={entry}
      className={talks ? "answer talks" : "answer"}
      label={`Step${placement.step ? ` ${placement.step}` : ""}`}
    >
      {parts.map((part, index) => (
        <StepPart key={index} index={index} part={part} message={message} placement={placement} />
      ))}
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

interface StepPartProps {
  index: number;
  part: Part;
  message: Message;
  placement: Placement;
}

function StepPart({ index, part, message, placement }: StepPartProps) {
  const place = { messageId: message.id, index };
  if (part.type === "tool-call") {
    return <ToolCall part={part} message={message} placement={placement} index={index} />;
  }
  if (part.type === "reasoning") return <Reasoning part={part} place={place} />;
  return (
    <PartFrame place={place} className="part">
      <PartView part={part} />
    </PartFrame>
  );
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
