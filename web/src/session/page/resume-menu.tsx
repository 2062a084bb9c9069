/** The command with which the agent continues its session in a terminal, to see and to copy. */

import type { ResumeCommand } from "@/api/types";
import { CopyButton } from "@/design/copy-button";
import { Menu, MenuSection } from "@/design/menu";

export function ResumeMenu({ resume }: { resume: ResumeCommand }) {
  const line = resumeLine(resume);
  return (
    <Menu label="Resume" icon="terminal" title="Continue this session in a terminal">
      <MenuSection title="Continue this session in a terminal">
        <code className="menu-code">{line}</code>
        <CopyButton className="menu-item" label="Copy the command" text={() => line} />
      </MenuSection>
    </Menu>
  );
}

/** The command with which an agent resumes its session, for a shell. */
export function resumeLine({ folder, command }: ResumeCommand): string {
  const resume = command.map(quoted).join(" ");
  return folder ? `cd ${quoted(folder)} && ${resume}` : resume;
}

/** Quoted as one word of a shell, since its text comes from a log. */
function quoted(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
