/** A slash command or shell escape as it was typed; logs keep it in tags ("<command-name>/model</command-name>…"). */

export function commandText(text: string): string {
  const name = tagged(text, "command-name");
  if (name) return `${name} ${tagged(text, "command-args")}`.trim();
  const shell = tagged(text, "bash-input") || (text.startsWith(SHELL) ? tagged(text, "command") : "");
  return shell ? `! ${shell}` : text;
}

/** What came of a command that stands in the same text, between the agent's tags; empty where there is none. */
export function commandOutput(text: string): string {
  return text.startsWith(SHELL) ? tagged(text, "result") : "";
}

const SHELL = "<user_shell_command>";

/** What stands in a tag; to the end where the text was cut before the tag was closed. */
function tagged(text: string, tag: string): string {
  return new RegExp(`<${tag}>([\\s\\S]*?)(?:</|$)`).exec(text)?.[1]?.trim() ?? "";
}
