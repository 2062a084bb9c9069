/** The edits inside the input of an editing tool, in the words of the agents read so far. */

import type { Json, JsonObject } from "@/api/types";
import { type DiffLine, diffOf } from "@/content/diff-lines";
import { isObject } from "./tool-summary";

/** One list of lines an edit: a single replacement, or several in `edits`. */
export function editsOf(input: JsonObject): DiffLine[][] {
  const edits: Json[] = Array.isArray(input.edits) ? input.edits : [input];
  return edits.flatMap((edit) => {
    if (!isObject(edit) || typeof edit.new_string !== "string") return [];
    return [diffOf(typeof edit.old_string === "string" ? edit.old_string : "", edit.new_string)];
  });
}

/** The whole content that a call writes into a file; null when it writes none. */
export function writtenContent(input: JsonObject): string | null {
  const content = input.content ?? input.new_source;
  return typeof content === "string" ? content : null;
}
