/**
 * What an agent writes around an output before the model sees it: "Wall time: …", "<untrusted_context>". It is shown
 * too, but smaller than the output itself; nothing is left out.
 */

export interface FramedOutput {
  before: string;
  body: string;
  after: string;
}

/** "Exit code: 0", "Chunk ID: ef5a00", "Wall time 0.1 seconds", "Script completed". */
const FACT =
  /^(?:(?:Chunk ID|Exit [Cc]ode|Wall time|Original token count|Total output lines|Duration|Command|Directory|Process Group PGID|Background PIDs|Signal|Error|Stderr)\b.*|Process exited with code \d+|Script (?:completed|failed)|Subagent '[^']*' finished\.|Termination Reason: .*)$/;

const OPENING = /^<([a-z][\w-]*)(?: [^<>]*)?>$/;

/** Elements that are facts of their own, each on its line ("<type>file</type>"). */
const ELEMENT = /^<([a-z][\w-]*)>[^<>]*<\/\1>$/;

const LONGEST = 12;

/** What stands before the output itself; "Result:" at the very start is what a command printed. */
const LABEL = /^(Output:|Result:)(?: |$)/;
const LABEL_ALONE = /^(Output:)(?: |$)/;

/** Claude Code's tag around the words of a failure. */
const FAILURE = /^(<tool_use_error>)([\s\S]*)(<\/tool_use_error>)\s*$/;

export function unframe(text: string): FramedOutput {
  const failure = FAILURE.exec(text);
  if (failure) return { before: failure[1] ?? "", body: failure[2] ?? "", after: failure[3] ?? "" };
  const lines = text.split("\n");
  const opened: string[] = [];
  let start = 0;
  while (start < lines.length && start < LONGEST) {
    const line = lines[start] ?? "";
    const tag = OPENING.exec(line)?.[1];
    if (tag) opened.push(tag);
    else if (!ELEMENT.test(line) && !FACT.test(line)) break;
    start += 1;
  }
  const label = (start > 0 ? LABEL : LABEL_ALONE).exec(lines[start] ?? "")?.[1] ?? "";
  // Facts alone do not make a frame: a command may print "Error: …" itself.
  if (!label && opened.length === 0) return { before: "", body: text, after: "" };
  return cut(lines, start, label, opened);
}

function cut(lines: string[], start: number, label: string, opened: string[]): FramedOutput {
  const first = label ? (lines[start] ?? "").slice(label.length).trimStart() : null;
  const bodyStart = first === "" ? start + 1 : start;
  const end = endOf(lines, bodyStart, opened);
  const body = lines.slice(bodyStart, end);
  if (first) body[0] = first;
  return {
    before: [...lines.slice(0, start), ...(label ? [label] : [])].join("\n"),
    body: body.join("\n"),
    after: lines.slice(end).join("\n").trim(),
  };
}

/** Where the frame begins again: closing tags at the end, and facts right before them. */
function endOf(lines: string[], start: number, opened: string[]): number {
  if (opened.length === 0) return lines.length;
  let end = lines.length;
  while (end > start && (lines[end - 1] ?? "").trim() === "") end -= 1;
  const closing = new Set(opened.map((tag) => `</${tag}>`));
  let closed = end;
  while (closed > start && closing.has((lines[closed - 1] ?? "").trim())) closed -= 1;
  if (closed === end) return lines.length;
  while (closed > start && FACT.test(lines[closed - 1] ?? "")) closed -= 1;
  return closed;
}
