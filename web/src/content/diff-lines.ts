/** The lines of an edit (what was removed, what was added, and a little of what stayed), and their colours. */

import { diffLines } from "diff";
import type { Run } from "./highlight";

export interface DiffLine {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
  /** Numbers of the line in the file before and after; absent where nobody recorded them. */
  before?: number;
  after?: number;
}

const CONTEXT = 3;

/** Milliseconds after which two long texts with nothing in common are shown as one gone and one come. */
const PATIENCE = 200;

export function diffOf(before: string, after: string): DiffLine[] {
  const changes = diffLines(before, after, { timeout: PATIENCE }) ?? replaced(before, after);
  return changes.flatMap((change, index) => {
    const lines = linesOf(change.value);
    if (change.added) return lines.map((text) => ({ kind: "added" as const, text }));
    if (change.removed) return lines.map((text) => ({ kind: "removed" as const, text }));
    return context(lines, index > 0, index < changes.length - 1);
  });
}

function replaced(before: string, after: string) {
  return [
    { value: before, removed: true, added: false },
    { value: after, removed: false, added: true },
  ];
}

/** A file that was not there before: every line is added. */
export function addedLines(content: string): DiffLine[] {
  return linesOf(content).map((text, index) => ({ kind: "added", text, after: index + 1 }));
}

export function countChanges(lines: DiffLine[]): { added: number; removed: number } {
  const count = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { added: count("added"), removed: count("removed") };
}

function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Unchanged lines, of which only those next to a change stay. */
function context(lines: string[], changeBefore: boolean, changeAfter: boolean): DiffLine[] {
  const head = changeBefore ? CONTEXT : 0;
  const tail = changeAfter ? CONTEXT : 0;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  const hidden = lines.length - head - tail;
  if (hidden <= 1) return lines.map(same);
  const gap: DiffLine = { kind: "gap", text: `${hidden} unchanged lines` };
  return [...lines.slice(0, head).map(same), gap, ...lines.slice(lines.length - tail).map(same)];
}

/** Colours lines that follow each other; null where it does not know the language. */
export type Paint = (lines: string[]) => Run[][] | null;

/** For each line its runs; null for those that have no colours. */
export function colourDiff(lines: DiffLine[], paint: Paint): (Run[] | null)[] {
  const colours: (Run[] | null)[] = lines.map(() => null);
  for (const piece of pieces(lines)) {
    // An unchanged line is in both: the new text wins.
    for (const gone of ["added", "removed"] as const) {
      const side = piece.filter((index) => lines[index]?.kind !== gone);
      const painted = paint(side.map((index) => lines[index]?.text ?? ""));
      side.forEach((index, place) => {
        colours[index] = painted?.[place] ?? null;
      });
    }
  }
  return colours;
}

/** Indexes of the lines between two gaps. */
function pieces(lines: DiffLine[]): number[][] {
  const found: number[][] = [[]];
  lines.forEach((line, index) => {
    if (line.kind === "gap") found.push([]);
    else found.at(-1)?.push(index);
  });
  return found;
}
