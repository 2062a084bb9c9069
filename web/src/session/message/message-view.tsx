/** A message, by who wrote it: a person, the model, or the agent's harness. */

import { useMemo } from "react";
import type { Message, Origin, Part, TextPart } from "@/api/types";
import { Terminal } from "@/content/terminal";
import { Icon, type IconName } from "@/design/icon";
import { plural } from "@/format/numbers";
import { blockOf, isInjected } from "@/session/blocks";
import { useDisclosure } from "@/session/disclosure";
import type { MessageEntry } from "@/session/entries";
import { useSessionContext } from "@/session/session-context";
import { CallGroup, layOut, type PlacedPart } from "@/session/tool/call-group";
import { unframe } from "@/session/tool/output-formats";
import { MessageFrame } from "./message-frame";
import { commandOutput, commandText, previewOf, sizeOf, textOf } from "./message-text";
import { useMissingWords } from "./missing-words";
import { PartFrame } from "./part-frame";
import { PartView, Reasoning, UnrecordedReasoning } from "./part-view";

export function MessageView({ entry }: { entry: MessageEntry }) {
  const { message } = entry;
  if (message.role === "assistant") return <AssistantMessage entry={entry} />;
  return isInjected(message) ? <InjectedMessage entry={entry} /> : <PromptMessage entry={entry} />;
}

/** Parts that are one line: a step of nothing else needs no room around it. */
const QUIET: ReadonlySet<Part["type"]> = new Set(["tool-call", "reasoning", "data"]);

const NO_PARTS: Part[] = [];

/** One step of the model: reasoning, text and tool calls in the order it produced them. */
export function AssistantMessage({ entry }: { entry: MessageEntry }) {
  const { message, placement } = entry;
  const parts = message.parts ?? NO_PARTS;
  const { hidden } = useSessionContext();
  const missing = useMissingWords(message);
  const items = useMemo(() => layOut(parts), [parts]);
  const talks = parts.some((part) => !QUIET.has(part.type)) && !hidden.has("text");
  return (
    <MessageFrame
      entry={entry}
      className={talks ? "answer talks" : "answer"}
      label={`Step${placement.step ? ` ${placement.step}` : ""}`}
    >
      {thoughtUnseen(message) && !hidden.has("reasoning") && (
        <UnrecordedReasoning tokens={message.usage?.reasoning ?? 0} />
      )}
      {items.map((item, index) => {
        if (hidden.has(item.kind === "calls" ? "calls" : blockOf(item.item.part))) return null;
        return item.kind === "calls" ? (
          <CallGroup key={index} calls={item.calls} message={message} placement={placement} />
        ) : (
          <StepPart key={index} placed={item.item} message={message} />
        );
      })}
      {message.error && (
        <p className="answer-error" role="note">
          <Icon name="cross" size={14} />
          {[message.error.status, message.error.kind, message.error.text].filter(Boolean).join(" · ")}
        </p>
      )}
      {parts.length === 0 && !message.error && <p className="answer-empty">{missing ?? "Empty answer."}</p>}
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
const STOP_NOTES: Record<string, string> = {
  length: "Cut off: the limit of output tokens was reached",
  aborted: "Interrupted",
  refusal: "The model refused",
  context_window: "Cut off: the context window was full",
  content_filter: "Stopped by a content filter",
  pause: "Paused",
};

function StopNote({ message }: { message: Message }) {
  const stop = message.stop_reason && STOP_NOTES[message.stop_reason];
  return stop ? <p className="answer-stop">{stop}</p> : null;
}

const PROMPT_LABELS: Partial<Record<Origin, { text: string; icon: IconName }>> = {
  command: { text: "Command", icon: "flag" },
  shell: { text: "Shell command", icon: "terminal" },
  subagent_prompt: { text: "Task from the parent session", icon: "agent" },
};

/** What a person asked: the start of a turn, and what the eye looks for while scrolling. */
export function PromptMessage({ entry }: { entry: MessageEntry }) {
  const { message, placement } = entry;
  const label = message.origin && PROMPT_LABELS[message.origin];
  const parts = message.parts ?? [];
  const texts = addedTexts(parts);
  const added = new Set(texts.map(({ index }) => index));
  const missing = useMissingWords(message);
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
          !added.has(index) && (
            <PartFrame key={index} place={{ messageId: message.id, index }} className="part">
              {verbatim && part.type === "text" ? (
                <TypedCommand text={part.text} />
              ) : (
                <PartView part={part} breaks />
              )}
            </PartFrame>
          ),
      )}
      {missing && <p className="answer-empty">{missing}</p>}
      {texts.length > 0 && <AddedText messageId={message.id} texts={texts} />}
    </MessageFrame>
  );
}

/** A command as it was typed, with its output where the agent kept both together. */
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

export interface PlacedText {
  part: TextPart;
  index: number;
}

/** The texts of a prompt that the agent added, with their indexes among its parts. */
export function addedTexts(parts: Part[]): PlacedText[] {
  return parts.flatMap((part, index) => (part.type === "text" && isSynthetic(part) ? [{ part, index }] : []));
}

/** All agents mark such a text as `synthetic`, each in its own metadata. */
function isSynthetic({ metadata = {} }: TextPart): boolean {
  return Object.values(metadata).some(
    (own) => typeof own === "object" && own !== null && !Array.isArray(own) && own.synthetic === true,
  );
}

/** What the agent added to a prompt (contents of named files, marks around images), folded to one line. */
export function AddedText({ messageId, texts }: { messageId: string; texts: PlacedText[] }) {
  const { linked } = useSessionContext();
  const isLinked = linked?.messageId === messageId && texts.some(({ index }) => index === linked.part);
  const [open, toggle] = useDisclosure(`added-text/${messageId}`, isLinked);
  const all = texts.map(({ part }) => part.text).join("\n");
  return (
    <div className="added-text part">
      <button type="button" className="fold fold-faint" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name="system" size={14} />
        <span>Added by the agent</span>
        {!open && <span className="fold-preview">{previewOf(all)}</span>}
        <span className="fold-size">{plural(all.length, "character")}</span>
      </button>
      {open &&
        texts.map(({ part, index }) => (
          <PartFrame key={index} place={{ messageId, index }} className="part">
            <pre className="output" tabIndex={0}>
              {part.text.trim()}
            </pre>
          </PartFrame>
        ))}
    </div>
  );
}

interface InjectedKind {
  label: string;
  icon: IconName;
}

const INJECTED_KINDS: Partial<Record<Origin, InjectedKind>> = {
  notification: { label: "Notification", icon: "info" },
  command_output: { label: "Command output", icon: "terminal" },
  shell_output: { label: "Shell output", icon: "terminal" },
  compaction: { label: "Summary that replaced the context", icon: "compact" },
};

const SYSTEM_PROMPT: InjectedKind = { label: "System prompt", icon: "system" };
const INJECTED_CONTEXT: InjectedKind = { label: "Injected context", icon: "system" };

/**
 * What the agent's harness added to the context (reminders, outputs of commands, summaries), folded to one line.
 */
export function InjectedMessage({ entry }: { entry: MessageEntry }) {
  const { message } = entry;
  const { linked } = useSessionContext();
  const [open, toggle] = useDisclosure(message.id, linked?.messageId === message.id);
  const kind = injectedKindOf(message);
  const text = textOf(message);
  const missing = useMissingWords(message);
  const size = sizeOf(message);
  return (
    <MessageFrame entry={entry} className="injected" label={kind.label}>
      <button type="button" className="fold" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name={kind.icon} />
        <span>{kind.label}</span>
        {!open && <span className="fold-preview">{missing ?? previewOf(text)}</span>}
        {size > 0 && <span className="fold-size">{plural(size, "character")}</span>}
      </button>
      {open && (
        <div className="injected-text">
          {missing && <p className="answer-empty">{missing}</p>}
          {message.parts?.map((part, index) => (
            <PartFrame key={index} place={{ messageId: message.id, index }} className="part">
              <InjectedPart part={part} origin={message.origin} />
            </PartFrame>
          ))}
        </div>
      )}
    </MessageFrame>
  );
}

function InjectedPart({ part, origin }: { part: Part; origin: Origin | undefined }) {
  if (part.type !== "text" || origin === "compaction") return <PartView part={part} />;
  return (
    <pre className="output" tabIndex={0}>
      <Terminal text={part.text} />
    </pre>
  );
}

function injectedKindOf(message: Message): InjectedKind {
  if (message.role === "system") return SYSTEM_PROMPT;
  return (message.origin && INJECTED_KINDS[message.origin]) ?? INJECTED_CONTEXT;
}
