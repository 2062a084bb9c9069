/** The command with which an agent goes on with its session, where the agent has one. */

import type { Session } from "@/api/types";

const COMMANDS: Record<string, (id: string) => string> = {
  "claude-code": (id) => `claude --resume ${id}`,
  codex: (id) => `codex resume ${id}`,
  "gemini-cli": (id) => `gemini --resume ${id}`,
  klaude: (id) => `klaude --resume ${id}`,
  opencode: (id) => `opencode --session ${id}`,
};

/** To be run in a shell; null for an agent that is not known, and for what is no session of its own. */
export function resumeCommand(session: Session): string | null {
  const command = COMMANDS[session.agent];
  const isSubagent = session.relationships?.[0]?.kind === "subagent";
  if (!command || session.native || isSubagent) return null;
  const folder = session.cwd ?? session.project?.path;
  const resume = command(quoted(session.external_id));
  return folder ? `cd ${quoted(folder)} && ${resume}` : resume;
}

/** As one word of a shell, whatever a log had it be. */
function quoted(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
