/** The messages of a session that the user has pinned: buttons that pin one, and the list of all. */

import { useMemo } from "react";
import { annotationsOf, useAnnotate } from "@/annotations/annotations";
import type { OutlineEntry, SessionItem } from "@/api/types";
import { Icon } from "@/design/icon";
import { commandText, previewOf } from "@/session/message/message-text";
import type { PinnedMessages } from "@/session/session-context";

/** Null until the session is loaded. */
export function usePins(session: SessionItem): PinnedMessages {
  const { mutate, isPending, variables } = useAnnotate(session);
  const stored = annotationsOf(session).pins;
  const pins = (isPending && variables.pins) || stored;
  return useMemo(
    () => ({
      has: (id) => pins.includes(id),
      toggle: (id) => mutate({ pins: pins.includes(id) ? pins.filter((pin) => pin !== id) : [...pins, id] }),
    }),
    [pins, mutate],
  );
}

interface PinsProps {
  entries: OutlineEntry[];
  onJump: (position: number) => void;
}

export function Pins({ entries, onJump }: PinsProps) {
  const pinned = entries.filter(({ kind }) => kind === "pin");
  if (pinned.length === 0) return null;
  return (
    <section className="pins" aria-label="Pinned messages">
      <h2>Pinned</h2>
      <ul>
        {pinned.map((entry) => (
          <li key={entry.message_id}>
            <button type="button" className="outline-entry" onClick={() => onJump(entry.position)}>
              <span className="outline-mark">
                <Icon name="pin" size={13} />
              </span>
              <span className="outline-text" dir="auto">
                {previewOf(commandText(entry.text)) || "(no text)"}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
