/** The pages that a search of the web found or a fetch read. Only http and https ever become links. */

import type { Json, Part, ToolCallPart, ToolResult } from "@/api/types";
import { isObject, textField } from "./json-fields";

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

const LIST = /(?:^|\n)Links: (\[.*\])(?:\n|$)/g;

function linksInText(text: string): WebResult[] {
  return [...text.matchAll(LIST)].flatMap(([, list]) => linksIn(parsed(list ?? "")));
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

/** What the web was asked: words to look for, or addresses to read. */
export function webQueries(call: ToolCallPart): string[] {
  const input = call.input;
  if (!isObject(input)) return [];
  const asked: Json[] = [
    input.url ?? null,
    input.query ?? null,
    ...(Array.isArray(input.queries) ? input.queries : []),
  ];
  const action = isObject(input.action) ? input.action : null;
  if (action) asked.push(action.url ?? null, action.query ?? null);
  return [...new Set(asked.filter((value): value is string => typeof value === "string" && value !== ""))];
}
