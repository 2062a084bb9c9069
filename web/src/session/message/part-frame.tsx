/** Around every part: the place that a link to the part leads to, flashing when it has just been reached. */

import type { ReactNode } from "react";
import { useLinked } from "@/session/session-context";

/** A part by its place in its message. */
export interface PartPlace {
  messageId: string;
  index: number;
}

/** Under what it is remembered whether a part is open. */
export function disclosureId({ messageId, index }: PartPlace): string {
  return `${messageId}/${index}`;
}

interface PartFrameProps {
  place: PartPlace;
  className: string;
  /** Of a tool call: what its records and its other mentions know it by. */
  callId?: string;
  children: ReactNode;
}

export function PartFrame({ place, className, callId, children }: PartFrameProps) {
  const { flashing } = useLinked(place.messageId, place.index);
  return (
    <div className={flashing ? `${className} flash` : className} data-part={place.index} data-call={callId}>
      {children}
    </div>
  );
}
