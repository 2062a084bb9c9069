/** Around every message: its content, the note beside it, and its details when asked for. */

import type { ReactNode } from "react";
import { useOwnDisclosure } from "./disclosure";
import type { MessageEntry } from "./entry";
import { detailsId, MessageDetails } from "./message-details";
import { useLinked } from "./session-context";
import { StepNote } from "./step-note";

interface MessageFrameProps {
  entry: MessageEntry;
  className: string;
  label: string;
  children: ReactNode;
}

export function MessageFrame({ entry, className, label, children }: MessageFrameProps) {
  const { message, placement } = entry;
  const { flashing } = useLinked(message.id, null);
  const [detailed, toggleDetails] = useOwnDisclosure(detailsId(message.id));
  return (
    <article
      className={`message ${className}${flashing ? " flash" : ""}`}
      data-fate={placement.fate}
      data-message={message.id}
      aria-label={label}
    >
      <div className="message-body">{children}</div>
      <StepNote entry={entry} detailed={detailed} onToggle={toggleDetails} />
      {detailed && <MessageDetails entry={entry} />}
    </article>
  );
}
