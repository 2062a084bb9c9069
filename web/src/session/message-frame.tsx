/** Around every message: its content, the note beside it, and its details when asked for. */

import { type ReactNode, useState } from "react";
import type { MessageEntry } from "./entries";
import { MessageDetails } from "./message-details";
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
  const [detailed, setDetailed] = useState(false);
  return (
    <article
      className={`message ${className}${flashing ? " flash" : ""}`}
      data-fate={placement.fate}
      aria-label={label}
    >
      <div className="message-body">{children}</div>
      <StepNote entry={entry} detailed={detailed} onToggle={() => setDetailed(!detailed)} />
      {detailed && <MessageDetails entry={entry} />}
    </article>
  );
}
