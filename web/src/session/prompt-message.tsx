/** What a person asked: the start of a turn, and what the eye looks for while scrolling. */

import type { Origin } from "@/api/types";
import { Terminal } from "@/content/terminal";
import { Icon, type IconName } from "@/design/icon";
import { commandOutput, commandText } from "./command-text";
import type { MessageEntry } from "./entry";
import { MessageFrame } from "./message-frame";
import { unframe } from "./parts/output-frame";
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
                <TypedCommand text={part.text} />
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

/** As it was typed, and what came of it where the agent kept both together. */
function TypedCommand({ text }: { text: string }) {
  const output = commandOutput(text);
  return (
    <>
      <pre>{commandText(text)}</pre>
      {output && <CommandOutput text={output} />}
    </>
  );
}

function CommandOutput({ text }: { text: string }) {
  const { before, body } = unframe(text);
  return (
    <>
      {before && <pre className="output-frame">{before}</pre>}
      <pre className="output" tabIndex={0}>
        <Terminal text={body.trim()} />
      </pre>
    </>
  );
}
