/** Fields of JSON that an agent wrote. A field that is missing or of another type gives null. */

import type { Json, JsonObject } from "@/api/types";

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The first of these fields that holds a text which is not empty. */
export function textField(value: Json | undefined, names: readonly string[]): string | null {
  if (!isObject(value)) return null;
  const name = names.find((candidate) => typeof value[candidate] === "string" && value[candidate] !== "");
  return name === undefined ? null : (value[name] as string);
}

/** The first of these fields that holds a list. */
export function listField(value: Json | undefined, names: readonly string[]): Json[] | null {
  if (!isObject(value)) return null;
  for (const name of names) {
    const found = value[name];
    if (Array.isArray(found)) return found;
  }
  return null;
}

export function numberField(value: Json | undefined, name: string): number | null {
  const found = isObject(value) ? value[name] : undefined;
  return typeof found === "number" ? found : null;
}
