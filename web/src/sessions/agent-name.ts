/** What people call an agent; one without an entry goes by its own name. */

const NAMES: Record<string, string> = {
  "claude-code": "Claude Code",
  codex: "Codex",
  "gemini-cli": "Gemini CLI",
  opencode: "OpenCode",
  klaude: "klaude-code",
};

export function agentName(agent: string): string {
  return NAMES[agent] ?? agent;
}
