/** A target of a jump in a session. */
export interface Place {
  /** Position of a message or event; null is the very start. */
  position: number | null;
  /** Index of the part of that message. */
  part: number | null;
  /** Or the id of a tool call in it. */
  call?: string;
  /** Words in that part to scroll to, in lower case. */
  words?: string[];
}

export const START: Place = { position: null, part: null };

/** Behind everything, however long the session is by now. */
export const END: Place = { position: Number.MAX_SAFE_INTEGER, part: null };

export function placeAt(position: number): Place {
  return { position, part: null };
}
