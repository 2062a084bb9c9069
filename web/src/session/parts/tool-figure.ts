/** How much came back, in two words beside the call: "12 lines", "3 matches in 2 files". */

import type { ToolCallPart, ToolKind } from "@/api/types";
import { plural } from "@/format/numbers";
import { unframe } from "./output-frame";
import { parseHits, summaryOf } from "./search-hits";
import { webResultsOf } from "./web-results";

/** Of kinds whose amount says something. */
const COUNTED: ReadonlySet<ToolKind | undefined> = new Set<ToolKind>(["read", "search", "execute", "fetch"]);

/** Longer outputs are not looked into for a figure. */
const LARGEST = 70_000;

export function figureOf(call: ToolCallPart): string | null {
  const result = call.results?.at(-1);
  if (!COUNTED.has(call.kind) || !result || (result.status ?? "success") !== "success") return null;
  const links = call.kind === "fetch" || call.kind === "search" ? webResultsOf(result) : [];
  if (links.length > 0) return plural(links.length, "page");
  const [only, ...others] = result.content ?? [];
  if (only?.type !== "text" || others.length > 0 || only.blob || result.spilled_to) return null;
  if (only.text.length > LARGEST) return null;
  const { body } = unframe(only.text);
  const hits = call.kind === "search" ? parseHits(body) : null;
  return hits ? summaryOf(hits) : linesOf(body);
}

function linesOf(text: string): string {
  const trimmed = text.trimEnd();
  return trimmed === "" ? "no output" : plural(trimmed.split("\n").length, "line");
}
