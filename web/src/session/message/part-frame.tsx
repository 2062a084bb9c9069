/** Around every part: the place that a link to the part leads to, flashing when it has just been reached. */

import { createContext, type ReactNode, useContext, useMemo } from "react";
import { useLinked, useSessionContext } from "@/session/session-context";

/** A part by its place in its message. */
export interface PartPlace {
  messageId: string;
  index: number;
}

/** Under what it is remembered whether a part is open. */
export function disclosureId({ messageId, index }: PartPlace): string {
  return `${messageId}/${index}`;
}

const PlaceContext = createContext<PartPlace | null>(null);

const NO_WORDS: string[] = [];

/** The words that a search has found in this part and leads to; none for other parts. */
export function useSoughtWords(): string[] {
  const place = useContext(PlaceContext);
  const { linked } = useSessionContext();
  const isHere = linked?.messageId === place?.messageId && linked?.part === place?.index;
  return (isHere && linked?.words) || NO_WORDS;
}

interface PartFrameProps {
  place: PartPlace;
  className: string;
  /** Of a tool call: what its records and its other mentions know it by. */
  callId?: string;
  children: ReactNode;
}

export function PartFrame({ place, className, callId, children }: PartFrameProps) {
  const { messageId, index } = place;
  const { flashing } = useLinked(messageId, index);
  const here = useMemo(() => ({ messageId, index }), [messageId, index]);
  return (
    <PlaceContext value={here}>
      <div className={flashing ? `${className} flash` : className} data-part={index} data-call={callId}>
        {children}
      </div>
    </PlaceContext>
  );
}
