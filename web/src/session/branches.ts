/** Folds stretches that the conversation left (rewound, retracted, superseded) behind a line that opens them. */

import { type BranchEntry, type Entry, fateOf, type IsOpen, type MessageEntry } from "./entry";
import { isLeft } from "./fates";

/** How the ids of branches begin, under which it is remembered whether they are open. */
export const BRANCH_PREFIX = "branch/";

type LeftFate = BranchEntry["fate"];

interface Stretch {
  fate: LeftFate;
  cause: string | null;
  entries: Entry[];
}

export function foldBranches(entries: Entry[], isOpen: IsOpen): Entry[] {
  const shown: Entry[] = [];
  for (let index = 0; index < entries.length; ) {
    const stretch = stretchAt(entries, index);
    if (!stretch) {
      shown.push(entries[index] as Entry);
      index += 1;
      continue;
    }
    const head = headOf(stretch, isOpen);
    shown.push(head);
    if (head.open) shown.push(...stretch.entries.map((entry): Entry => ({ ...entry, inBranch: true })));
    index += stretch.entries.length;
  }
  return shown;
}

/** Neighbours that share a fate and its cause; what happened between two of them belongs to them. */
function stretchAt(entries: Entry[], start: number): Stretch | null {
  const own = leftFate(entries[start] as Entry);
  if (!own) return null;
  let end = start + 1;
  for (let index = start + 1; index < entries.length; index += 1) {
    const entry = entries[index] as Entry;
    const found = fateOf(entry);
    if (found && (found.fate !== own.fate || found.cause !== own.cause)) break;
    if (found) end = index + 1;
    else if (entry.kind === "event" && entry.event.type === "rewind") break;
  }
  return { ...own, entries: entries.slice(start, end) };
}

function leftFate(entry: Entry): { fate: LeftFate; cause: string | null } | null {
  const found = fateOf(entry);
  // A sidecar never was on the way: it stands beside it, greyed.
  if (!found || found.fate === "active" || found.fate === "sidecar" || !isLeft(found.fate)) return null;
  return { fate: found.fate, cause: found.cause };
}

function headOf({ fate, cause, entries }: Stretch, isOpen: IsOpen): BranchEntry {
  const [first] = entries as [Entry];
  const id = branchId(cause ?? first.key);
  const messages = entries.flatMap(messagesOf);
  return {
    kind: "branch",
    key: `${id}/${first.key}`,
    id,
    position: first.position,
    last: entries.at(-1)?.position ?? first.position,
    fate,
    cause,
    messages: messages.length,
    prompt: messages.find(({ message }) => message.role === "user") ?? messages[0] ?? null,
    open: isOpen(id),
  };
}

/** A stretch may be loaded bit by bit: what it is known by is what it was left for, not where it begins. */
function branchId(cause: string): string {
  return BRANCH_PREFIX + cause;
}

function messagesOf(entry: Entry): MessageEntry[] {
  if (entry.kind === "message") return [entry];
  return entry.kind === "background" ? entry.items.flatMap(messagesOf) : [];
}
