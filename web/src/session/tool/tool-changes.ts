/**
 * What an editing call changes, file by file. The input holds what the model asked for; from the agent's own JSON
 * of the outcome it is what really happened, with the numbers of the lines.
 */

import type { Json, JsonObject, ToolCallPart } from "@/api/types";
import { addedLines, type DiffLine, diffOf } from "@/content/diff-lines";
import { type FileChange, isPatch, numbered, parsePatch } from "@/content/patches";
import { isObject, listField, numberField, textField } from "./json-fields";

/** Where agents keep these things; each row in the words of the agents read so far, and of their kin. */
const PATH = ["file_path", "filePath", "path", "absolute_path", "notebook_path", "filename", "file"];
const OLD = ["old_string", "oldString", "old_str", "old_text", "oldText", "search"];
const NEW = ["new_string", "newString", "new_str", "new_text", "newText", "replace"];
const CONTENT = ["content", "contents", "file_text", "new_source", "text"];
const PATCH = ["patch", "diff", "unified_diff", "fileDiff", "input"];

/**
 * A block that says which lines take the place of which: of Cline, of Roo Code (with the number of the first line), of
 * gptme.
 */
const BLOCK =
  /^[-<]{5,} (?:SEARCH|ORIGINAL)>?\n(?::\S*\n|-{5,}\n)*([\s\S]*?)^={5,}\n([\s\S]*?)^[+>]{5,} (?:REPLACE|UPDATED)$/gm;

export function pathOf(value: Json | undefined): string {
  return textField(value, PATH) ?? "";
}

/** Of the fields of an editing call: those that its diff shows already. */
export const SHOWN_BY_DIFF: ReadonlySet<string> = new Set([
  ...PATH,
  ...OLD,
  ...NEW,
  ...CONTENT,
  ...PATCH,
  "edits",
  "changes",
]);

/** The changes that a call requests; empty where its input is not understood. */
export function changesOf(call: ToolCallPart): FileChange[] {
  if (call.input_text && isPatch(call.input_text)) return parsePatch(call.input_text);
  const input = call.input;
  if (typeof input === "string") return isPatch(input) ? parsePatch(input) : [];
  if (!isObject(input)) return [];
  const patch = PATCH.map((name) => input[name]).find(
    (value): value is string => typeof value === "string" && isPatch(value),
  );
  if (patch !== undefined) return withPath(parsePatch(patch), pathOf(input));
  const blocks = PATCH.flatMap((name) => blocksIn(input[name], pathOf(input)));
  if (blocks.length > 0) return together(blocks);
  const edits = listField(input, ["edits", "changes"]) ?? [input];
  return together(edits.flatMap((edit) => (isObject(edit) ? replacement(edit, pathOf(input)) : [])));
}

function blocksIn(text: Json | undefined, path: string): FileChange[] {
  if (typeof text !== "string") return [];
  return [...text.matchAll(BLOCK)].map(([, before = "", after = ""]) => ({
    path,
    verb: "edit",
    lines: diffOf(before.replace(/\n$/, ""), after.replace(/\n$/, "")),
  }));
}

function replacement(edit: JsonObject, path: string): FileChange[] {
  const own = pathOf(edit) || path;
  const after = firstText(edit, NEW);
  if (after !== null) {
    return [{ path: own, verb: "edit", lines: diffOf(firstText(edit, OLD) ?? "", after) }];
  }
  const content = firstText(edit, CONTENT);
  // The input does not show whether the file existed: everything that is written counts as added.
  return content === null ? [] : [{ path: own, verb: "edit", lines: addedLines(content) }];
}

/** Unlike `textField`, an empty text is one: a deletion writes nothing. */
function firstText(value: JsonObject, names: readonly string[]): string | null {
  const name = names.find((candidate) => typeof value[candidate] === "string");
  return name === undefined ? null : (value[name] as string);
}

/** Several edits of one file are one change, with a gap between them. */
function together(changes: FileChange[]): FileChange[] {
  const joined: FileChange[] = [];
  for (const change of changes) {
    const last = joined.at(-1);
    if (last?.path !== change.path) joined.push({ ...change });
    else last.lines = [...last.lines, { kind: "gap", text: "" }, ...change.lines];
  }
  return joined;
}

/** What really changed, as the agent recorded it; nothing where it recorded no patch. */
export function recordedChanges(structured: Json | undefined): FileChange[] {
  if (!isObject(structured)) return [];
  const files = structured.changes;
  if (isObject(files)) return Object.entries(files).flatMap(([path, change]) => fileChange(path, change));
  const hunks = listField(structured, ["structuredPatch"]);
  if (hunks && hunks.length > 0) {
    return [{ path: pathOf(structured), verb: "edit", lines: hunks.flatMap(hunkLines) }];
  }
  if (structured.type === "create") {
    const content = firstText(structured, CONTENT);
    return content === null ? [] : [{ path: pathOf(structured), verb: "create", lines: addedLines(content) }];
  }
  const inner = structured.filediff;
  const patch = textField(inner, PATCH) ?? textField(structured, PATCH);
  if (patch === null || !isPatch(patch)) return [];
  const created = structured.isNewFile === true || structured.exists === false;
  const changes = withPath(parsePatch(patch), pathOf(inner) || pathOf(structured));
  return created ? changes.map((change) => ({ ...change, verb: "create" })) : changes;
}

/** One of many files, as Codex records them. */
function fileChange(path: string, change: Json): FileChange[] {
  if (!isObject(change)) return [];
  const patch = textField(change, PATCH);
  const movedTo = textField(change, ["move_path"]);
  const content = firstText(change, CONTENT) ?? "";
  if (change.type === "add") return [{ path, verb: "create", lines: addedLines(content) }];
  if (change.type === "delete") {
    const lines = addedLines(content).map(
      ({ text }, index): DiffLine => numbered("removed", text, index + 1, 0),
    );
    return [{ path, verb: "delete", lines }];
  }
  const lines = patch === null ? [] : parsePatch(patch).flatMap((parsed) => parsed.lines);
  return [movedTo ? { path, verb: "move", movedTo, lines } : { path, verb: "edit", lines }];
}

/** Lines of a hunk as Claude Code records them: signs before the text, numbers next to the list. */
function hunkLines(hunk: Json, index: number): DiffLine[] {
  let before = numberField(hunk, "oldStart") ?? 1;
  let after = numberField(hunk, "newStart") ?? 1;
  const lines = (listField(hunk, ["lines"]) ?? []).flatMap((line): DiffLine[] => {
    if (typeof line !== "string" || line.startsWith("\\")) return [];
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
    const made = numbered(kind, line.slice(1), before, after);
    if (kind !== "added") before += 1;
    if (kind !== "removed") after += 1;
    return [made];
  });
  return index > 0 ? [{ kind: "gap", text: "" }, ...lines] : lines;
}

/** Changes with the path of the call: a patch of one file may hold the file name only. */
function withPath(changes: FileChange[], path: string): FileChange[] {
  const [only] = changes;
  return path && only && changes.length === 1 ? [{ ...only, path }] : changes;
}
