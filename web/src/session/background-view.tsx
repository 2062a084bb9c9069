/** Injected context and quiet records, folded to one line together. */

import { Icon } from "@/design/icon";
import { plural } from "@/format/numbers";
import { useOwnDisclosure } from "./disclosure";
import type { BackgroundEntry, MessageEntry } from "./entry";
import { RecordsView } from "./event-view";
import { InjectedMessage, previewOf, sizeOf, textOf } from "./injected-message";
import { useSessionContext } from "./session-context";

export function BackgroundView({ entry }: { entry: BackgroundEntry }) {
  const [opened, toggle] = useOwnDisclosure(entry.key);
  const { linked } = useSessionContext();
  const messages = entry.items.filter((item) => item.kind === "message");
  const size = messages.reduce((sum, { message }) => sum + sizeOf(message), 0);
  const open = opened || messages.some(({ message }) => message.id === linked?.messageId);
  return (
    <div className="background">
      <button type="button" className="fold fold-faint" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name="system" size={14} />
        <span>{titleOf(entry, messages)}</span>
        {!open && <span className="fold-preview">{messages.map(firstWords).join(" · ")}</span>}
        <span className="fold-size">{plural(size, "character")}</span>
      </button>
      {open && (
        <div className="background-items">
          {entry.items.map((item) =>
            item.kind === "message" ? (
              <InjectedMessage key={item.key} entry={item} />
            ) : (
              <RecordsView key={item.key} entry={item} />
            ),
          )}
        </div>
      )}
    </div>
  );
}

/** "System prompt, 3 pieces of injected context, 2 records". */
function titleOf(entry: BackgroundEntry, messages: MessageEntry[]): string {
  const system = messages.filter(({ message }) => message.role === "system").length;
  const injected = messages.length - system;
  const records = entry.items.reduce(
    (sum, item) => sum + (item.kind === "records" ? item.events.length : 0),
    0,
  );
  return [
    system > 0 && "System prompt",
    injected === 1 && "Injected context",
    injected > 1 && `${injected} pieces of injected context`,
    records > 0 && plural(records, "record"),
  ]
    .filter(Boolean)
    .join(", ");
}

function firstWords({ message }: MessageEntry): string {
  return previewOf(textOf(message)).slice(0, 60);
}
