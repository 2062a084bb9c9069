/** A slash command or shell escape as it was typed; logs keep it in tags ("<command-name>/model</command-name>…"). */

export function commandText(text: string): string {
  const name = tagged(text, "command-name");
  if (name) return `${name} ${tagged(text, "command-args")}`.trim();
  const shell = tagged(text, "bash-input");
  return shell ? `! ${shell}` : text;
}

/** What stands in a tag; to the end where the text was cut before the tag was closed. */
function tagged(text: string, tag: string): string {
  return new RegExp(`<${tag}>([\\s\\S]*?)(?:</|$)`).exec(text)?.[1]?.trim() ?? "";
}
