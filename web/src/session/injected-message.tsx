/** What the agent's harness put into the context, folded to one line: reminders, outputs of commands, summaries. */

import type { Message, Origin, Part } from "@/api/types";
import { parseAnsi } from "@/content/ansi";
import { Terminal } from "@/content/terminal";
import { Icon, type IconName } from "@/design/icon";
import { plural } from "@/format/numbers";
import { useDisclosure } from "./disclosure";
import type { MessageEntry } from "./entry";
import { MessageFrame } from "./message-frame";
import { PartFrame } from "./parts/part-frame";
import { PartView } from "./parts/part-view";
import { useSessionContext } from "./session-context";

interface Kind {
  label: string;
  icon: IconName;
}

const KINDS: Partial<Record<Origin, Kind>> = {
  notification: { label: "Notification", icon: "info" },
  command_output: { label: "Command output", icon: "terminal" },
  shell_output: { label: "Shell output", icon: "terminal" },
  compaction: { label: "Summary that replaced the context", icon: "compact" },
};

const SYSTEM: Kind = { label: "System prompt", icon: "system" };
const INJECTED: Kind = { label: "Injected context", icon: "system" };

export function InjectedMessage({ entry }: { entry: MessageEntry }) {
  const { message } = entry;
  const { linked } = useSessionContext();
  const [open, toggle] = useDisclosure(message.id, linked?.messageId === message.id);
  const kind = kindOf(message);
  const text = textOf(message);
  const size = sizeOf(message);
  return (
    <MessageFrame entry={entry} className="injected" label={kind.label}>
      <button type="button" className="fold" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name={kind.icon} />
        <span>{kind.label}</span>
        {!open && <span className="fold-preview">{previewOf(text)}</span>}
        {size > 0 && <span className="fold-size">{plural(size, "character")}</span>}
      </button>
      {open && (
        <div className="injected-text">
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

function kindOf(message: Message): Kind {
  if (message.role === "system") return SYSTEM;
  return (message.origin && KINDS[message.origin]) ?? INJECTED;
}

/** All that it says; of what is no text, its kind. */
export function textOf(message: Message): string {
  return (message.parts ?? [])
    .map((part) => (part.type === "text" ? part.text : `[${part.type === "data" ? part.name : part.type}]`))
    .join("\n");
}

/** Characters of it. */
export function sizeOf(message: Message): number {
  return (message.parts ?? []).reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
}

/** Its first words on one line. */
export function previewOf(text: string): string {
  const plain = parseAnsi(text.slice(0, 600))
    .map((run) => run.text)
    .join("");
  return plain
    .replace(/<\/?[\w-]+>/g, " ")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, 200);
}
