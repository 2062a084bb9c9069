/** Folds neighbouring pieces of injected context, and the records between them, into one entry. */

import type { BackgroundEntry, Entry, MessageEntry, RecordsEntry } from "./entry";
import { isLeft } from "./fates";

type Piece = MessageEntry | RecordsEntry;

export function foldBackground(entries: Entry[]): Entry[] {
  const folded: Entry[] = [];
  let pieces: Piece[] = [];
  const close = () => {
    folded.push(...closed(pieces));
    pieces = [];
  };
  for (const entry of entries) {
    if (!isPiece(entry)) close();
    else if (!goesWith(pieces, entry)) close();
    if (isPiece(entry)) pieces.push(entry);
    else folded.push(entry);
  }
  close();
  return folded;
}

function isPiece(entry: Entry): entry is Piece {
  return entry.kind === "records" || (entry.kind === "message" && isInjectedContext(entry));
}

/** What the harness said to the model; outputs of commands, notices and summaries are things that happened. */
function isInjectedContext({ message }: MessageEntry): boolean {
  const role = message.role;
  return (
    (role === "system" || role === "developer") &&
    (message.origin === undefined || message.origin === "harness")
  );
}

/** What was left and what was not stay apart. */
function goesWith(pieces: Piece[], entry: Piece): boolean {
  const other = pieces.find((piece) => piece.kind === "message");
  if (!other || entry.kind === "records") return true;
  return isLeft(other.placement.fate) === isLeft(entry.placement.fate);
}

/** One piece alone stays what it is. */
function closed(pieces: Piece[]): Entry[] {
  const [first] = pieces;
  if (!first || pieces.length === 1) return pieces;
  const entry: BackgroundEntry = {
    kind: "background",
    key: `background/${first.key}`,
    position: first.position,
    items: pieces,
  };
  return [entry];
}
