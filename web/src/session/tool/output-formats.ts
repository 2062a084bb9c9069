/**
 * What the texts of tool results hold: the frame that an agent writes around an output, numbered lines of a file, search
 * hits, links. An output of another form is shown as it is.
 */

import type { Json, Part, ToolResult } from "@/api/types";
import { textField } from "./json-fields";

/**
 * An output and what the agent wrote around it before the model saw it: "Wall time: …", "<untrusted_context>". The frame
 * is shown too, but smaller than the output; nothing is left out.
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

/** A label before the output; "Result:" at the very start was printed by the command. */
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
  return cutFrame(lines, start, label, opened);
}

function cutFrame(lines: string[], start: number, label: string, opened: string[]): FramedOutput {
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

/** The lines of a file, as a reading tool printed them ("   12→code", "12\tcode", "12: code", "00012| code"). */
export interface NumberedLines {
  numbers: string[];
  code: string;
  /** What follows the numbered lines: reminders and remarks. */
  rest: string;
}

const NUMBERED = /^ *(\d+)(?:→|\t)(.*)$/;

/** Also written by other programs (`grep -n`): taken for numbers only where they count on. */
const COUNTED = /^ *0*(\d+)(?:: ?|\| ?)(.*)$/;

/** Null when the text does not start with numbered lines. */
export function splitNumbered(text: string): NumberedLines | null {
  const lines = text.split("\n");
  return splitBy(lines, NUMBERED, false) ?? splitBy(lines, COUNTED, true);
}

function splitBy(lines: string[], pattern: RegExp, counting: boolean): NumberedLines | null {
  const numbers: string[] = [];
  const code: string[] = [];
  for (const line of lines) {
    const match = pattern.exec(line);
    if (!match) break;
    if (counting && numbers.length > 0 && Number(match[1]) !== Number(numbers.at(-1)) + 1) break;
    numbers.push(match[1] ?? "");
    code.push(match[2] ?? "");
  }
  if (numbers.length === 0 || (counting && numbers.length < Math.min(2, lines.length))) return null;
  return { numbers, code: code.join("\n"), rest: lines.slice(numbers.length).join("\n").trim() };
}

export interface FoundFile {
  path: string;
  hits: { line: number; text: string; context: boolean }[];
}

/** "src/a.py:12:code", "src/a.py-11-code" of context; a drive's colon belongs to the path. */
const HIT = /^((?:[A-Za-z]:)?[^\n:]+?)(?::(\d+):|-(\d+)-)(.*)$/;
/** Gemini CLI: "File: src/a.py", then "L12: code". */
const FILE_LINE = /^File: (.+)$/;
const LINE_HIT = /^L(\d+): ?(.*)$/;
const SEPARATOR = /^-{2,3}$/;
/** "Found 3 files", "Found 2 matches for pattern…": written by the tool, not a hit. */
const REMARK = /^(?:Found \d+|No (?:files|matches)|Directory listing|\(Results are truncated)/;
const PATH = /^(?:[\w.~@+-]*[/\\])?[^\s:<>|]*[\w)\]]+[/\\]?$/;

export interface SearchOutput {
  remarks: string[];
  files: FoundFile[];
}

/** What a search tool found, by file; null when its output has another form, which is then shown as it is. */
export function parseHits(text: string): SearchOutput | null {
  const found: SearchOutput = { remarks: [], files: [] };
  for (const line of text.split("\n")) {
    if (line.trim() === "" || SEPARATOR.test(line)) continue;
    if (!addLine(found, line)) return null;
  }
  return found.files.length > 0 ? found : null;
}

function addLine(found: SearchOutput, line: string): boolean {
  if (REMARK.test(line)) return found.remarks.push(line) > 0;
  const hit = HIT.exec(line);
  if (hit) {
    const number = Number(hit[2] ?? hit[3]);
    fileOf(found, hit[1] ?? "").hits.push({
      line: number,
      text: hit[4] ?? "",
      context: hit[2] === undefined,
    });
    return true;
  }
  const path = FILE_LINE.exec(line)?.[1] ?? (PATH.test(line.trim()) ? line.trim() : null);
  if (path !== null) return found.files.push({ path, hits: [] }) > 0;
  const inFile = LINE_HIT.exec(line);
  const last = found.files.at(-1);
  if (!inFile || !last) return false;
  return last.hits.push({ line: Number(inFile[1]), text: inFile[2] ?? "", context: false }) > 0;
}

function fileOf(found: SearchOutput, path: string): FoundFile {
  const last = found.files.at(-1);
  const known = last?.path === path ? last : found.files.find((file) => file.path === path);
  if (known) return known;
  const added: FoundFile = { path, hits: [] };
  found.files.push(added);
  return added;
}

/** "12 matches in 3 files", "3 files". */
export function summaryOf({ files }: SearchOutput): string {
  const hits = files.flatMap((file) => file.hits).filter((hit) => !hit.context).length;
  const inFiles = `${files.length} ${files.length === 1 ? "file" : "files"}`;
  return hits === 0 ? inFiles : `${hits} ${hits === 1 ? "match" : "matches"} in ${inFiles}`;
}

/** A page that a web search found or a fetch read. Only http and https ever become links. */
export interface WebResult {
  url: string;
  title: string;
}

const WEB = /^https?:\/\//i;

export function isWebAddress(url: string): boolean {
  return WEB.test(url);
}

/** The links of a result: parts of their own, or a list of JSON inside the text ("Links: [{…}]"). */
export function webResultsOf(result: ToolResult): WebResult[] {
  const found = (result.content ?? []).flatMap(linksOf);
  return found.filter(
    (link, index) => isWebAddress(link.url) && found.findIndex(({ url }) => url === link.url) === index,
  );
}

function linksOf(part: Part): WebResult[] {
  if (part.type === "source-url") return [{ url: part.url, title: part.title ?? part.url }];
  if (part.type === "data") return linksIn(part.data);
  return part.type === "text" ? linksInText(part.text) : [];
}

const LINKS_LIST = /(?:^|\n)Links: (\[.*\])(?:\n|$)/g;

function linksInText(text: string): WebResult[] {
  return [...text.matchAll(LINKS_LIST)].flatMap(([, list]) => linksIn(parsed(list ?? "")));
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}

function linksIn(value: Json): WebResult[] {
  if (Array.isArray(value)) return value.flatMap(linksIn);
  const url = textField(value, ["url", "link", "uri"]);
  return url === null ? [] : [{ url, title: textField(value, ["title", "name"]) ?? url }];
}
