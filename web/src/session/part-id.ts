/** The id of a part, in links and for what is open: a call by its call id, as searches know it; what has none by its place. */

import type { Message } from "@/api/types";

export function partId(message: Message, index: number): string {
  const part = message.parts?.[index];
  if (part?.type === "tool-call") return part.tool_call_id;
  return part?.id ?? `${message.id}.${index}`;
}
