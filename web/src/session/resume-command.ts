/** The command with which an agent goes on with its session, to be run in a shell. */

import type { ResumeCommand } from "@/api/types";

export function resumeLine({ folder, command }: ResumeCommand): string {
  const resume = command.map(quoted).join(" ");
  return folder ? `cd ${quoted(folder)} && ${resume}` : resume;
}

/** As one word of a shell, whatever a log had it be. */
function quoted(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
