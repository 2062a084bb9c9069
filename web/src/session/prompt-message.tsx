/** What a person asked: the start of a turn, and what the eye looks for while scrolling. */

import type { Origin } from "@/api/types";
import { Icon, type IconName } from "@/design/icon";
import { commandText } from "./command-text";
import type { MessageEntry } from "./entries";
import { MessageFrame } from "./message-frame";
import { PartFrame } from "./parts/part-frame";
import { PartView } from "./parts/part-view";
import { PutIn, putInto } from "./put-in";

const LABELS: Partial<Record<Origin, { text: string; icon: IconName }>> = {
  command: { text: "Command", icon: "flag" },
  shell: { text: "Shell command", icon: "terminal" },
  subagent_prompt: { text: "Task given by the parent session", icon: "agent" },
};

export function PromptMessage({ entry }: { entry: MessageEntry }) {
  const { message, placement } = entry;
  const label = message.origin && LABELS[message.origin];
  const parts = message.parts ?? [];
  const texts = putInto(parts);
  const beside = new Set(texts.map(({ index }) => index));
  const verbatim = message.origin === "command" || message.origin === "shell";
  return (
    <MessageFrame
      entry={entry}
      className="prompt"
      label={`Prompt${placement.turn ? ` ${placement.turn}` : ""}`}
    >
      {label && (
        <p className="prompt-label">
          <Icon name={label.icon} size={14} /> {label.text}
        </p>
      )}
      {parts.map(
        (part, index) =>
          !beside.has(index) && (
            <PartFrame key={index} place={{ messageId: message.id, index }} className="part">
              {verbatim && part.type === "text" ? (
                <pre>{commandText(part.text)}</pre>
              ) : (
                <PartView part={part} breaks />
              )}
            </PartFrame>
          ),
      )}
      {texts.length > 0 && <PutIn messageId={message.id} texts={texts} />}
    </MessageFrame>
  );
}
