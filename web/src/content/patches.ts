/**
 * Patches as text, file by file: unified diffs (git's and plain ones, with or without headers) and the envelope that
 * models are taught to write ("*** Begin Patch"). What is no patch gives no file, never an error.
 */

import type { DiffLine } from "./diff-lines";

export type ChangeVerb = "edit" | "create" | "delete" | "move";

export interface FileChange {
  /** As the patch names it; empty where it names none. */
  path: string;
  verb: ChangeVerb;
  movedTo?: string;
  lines: DiffLine[];
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;

const SIGNS: Record<string, DiffLine["kind"]> = { "+": "added", "-": "removed", " ": "same", "": "same" };

export function isPatch(text: string): boolean {
  return /^\*\*\* Begin Patch/m.test(text) || text.split("\n", 20).some((line) => HUNK.test(line));
}

export function parsePatch(text: string): FileChange[] {
  return /^\*\*\* Begin Patch/m.test(text) ? parseEnvelope(text) : parseUnified(text);
}

/** What a header of a unified diff says of the file that follows. */
const HEADERS: [pattern: RegExp, apply: (change: FileChange, value: string) => void][] = [
  [/^--- (?!\/dev\/null)(.+)$/, (change, path) => nameOnce(change, path)],
  [/^--- \/dev\/null/, (change) => setVerb(change, "create")],
  [/^\+\+\+ \/dev\/null/, (change) => setVerb(change, "delete")],
  [/^\+\+\+ (.+)$/, (change, path) => nameOnce(change, path)],
  [/^new file mode/, (change) => setVerb(change, "create")],
  [/^deleted file mode/, (change) => setVerb(change, "delete")],
  [/^rename from (.+)$/, (change, path) => rename(change, path, change.movedTo)],
  [/^rename to (.+)$/, (change, path) => rename(change, change.path, path)],
  [/^Index: (.+)$/, (change, path) => nameOnce(change, path)],
];

const STARTS = /^(?:diff --git |Index: |--- )/;

function parseUnified(text: string): FileChange[] {
  const changes: FileChange[] = [];
  let current: FileChange | null = null;
  const lines = text.split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const hunk = HUNK.exec(line);
    if (hunk) {
      current ??= begin(changes);
      index = readHunk(lines, index, hunk, current);
      continue;
    }
    // A file begins with the first of its headers, or with the next one after lines.
    if (STARTS.test(line) && (!current || current.lines.length > 0)) current = begin(changes);
    for (const [pattern, apply] of HEADERS) {
      const match = pattern.exec(line);
      if (match && current) apply(current, match[1] ?? "");
    }
  }
  return changes.filter((change) => change.lines.length > 0 || change.verb !== "edit");
}

/** Reads the lines that a hunk's header counts; returns the index of its last line. */
function readHunk(lines: string[], start: number, hunk: RegExpExecArray, change: FileChange): number {
  let before = Number(hunk[1]);
  let after = Number(hunk[3]);
  const lastBefore = before + Number(hunk[2] ?? 1);
  const lastAfter = after + Number(hunk[4] ?? 1);
  if (change.lines.length > 0 || hunk[5]) change.lines.push({ kind: "gap", text: hunk[5] ?? "" });
  let index = start;
  while ((before < lastBefore || after < lastAfter) && index + 1 < lines.length) {
    index += 1;
    const line = lines[index] ?? "";
    const kind = SIGNS[line.slice(0, 1)];
    if (line.startsWith("\\")) continue;
    if (kind === undefined) return index - 1;
    change.lines.push(numbered(kind, line.slice(1), before, after));
    if (kind !== "added") before += 1;
    if (kind !== "removed") after += 1;
  }
  return index;
}

export function numbered(kind: DiffLine["kind"], text: string, before: number, after: number): DiffLine {
  if (kind === "added") return { kind, text, after };
  return kind === "removed" ? { kind, text, before } : { kind, text, before, after };
}

function begin(changes: FileChange[]): FileChange {
  const change: FileChange = { path: "", verb: "edit", lines: [] };
  changes.push(change);
  return change;
}

function nameOnce(change: FileChange, path: string): void {
  // "a/x.py" of git, "x.py<tab>Current" of others.
  change.path ||= path.replace(/\t.*$/, "").replace(/^[ab]\//, "");
}

function setVerb(change: FileChange, verb: ChangeVerb): void {
  change.verb = verb;
}

function rename(change: FileChange, from: string, to: string | undefined): void {
  change.verb = "move";
  change.path = from;
  if (to !== undefined) change.movedTo = to;
}

const FILE = /^\*\*\* (Update|Add|Delete) File: (.+)$/;
const VERBS: Record<string, ChangeVerb> = { Update: "edit", Add: "create", Delete: "delete" };

/** "*** Begin Patch": lines carry no numbers, "@@" says near what they stand. */
function parseEnvelope(text: string): FileChange[] {
  const changes: FileChange[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("*** End Patch")) break;
    const file = FILE.exec(line);
    const current = changes.at(-1);
    if (file) {
      changes.push({ path: file[2] ?? "", verb: VERBS[file[1] ?? ""] ?? "edit", lines: [] });
    } else if (line.startsWith("*** Move to: ") && current) {
      current.verb = "move";
      current.movedTo = line.slice("*** Move to: ".length);
    } else if (current && !line.startsWith("***")) {
      addEnvelopeLine(current, line);
    }
  }
  return changes;
}

function addEnvelopeLine(change: FileChange, line: string): void {
  if (line.startsWith("@@")) {
    const near = line.slice(2).trim();
    if (change.lines.length > 0 || near) change.lines.push({ kind: "gap", text: near });
    return;
  }
  const kind = SIGNS[line.slice(0, 1)];
  if (kind !== undefined) change.lines.push({ kind, text: line.slice(1) });
}
