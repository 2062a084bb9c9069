/**
 * The colours of a diff's lines. Lines of one language cannot be coloured one by one, as a text may run over several of
 * them: the old and the new text are each coloured as a whole, piece by piece between gaps.
 */

import type { DiffLine } from "./diff-lines";
import type { Run } from "./highlight";

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
