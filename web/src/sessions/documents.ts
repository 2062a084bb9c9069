/** The documents that are made of a session, and where they are. */

import { queryString } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { ExportFormat } from "@/api/types";

export const DOCUMENTS: { as: ExportFormat; label: string; note: string }[] = [
  { as: "html", label: "Page", note: "one HTML file" },
  { as: "markdown", label: "Markdown", note: "text" },
  { as: "json", label: "JSON", note: "the whole history" },
  { as: "jsonl", label: "JSON lines", note: "event by event" },
  { as: "uimessages", label: "UI messages", note: "AI SDK" },
];

export function exportPath(id: string, as: ExportFormat, redact: boolean): string {
  return `${sessionPath(id)}/export${queryString({ as, redact: redact || null })}`;
}
