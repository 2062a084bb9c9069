/** The share menu of a session: its link, exports, provider requests. */

import { useState } from "react";
import { getText, queryString } from "@/api/client";
import { download } from "@/api/files";
import { sessionPage, sessionPath } from "@/api/paths";
import type { ExportFormat, SessionItem } from "@/api/types";
import { CopyButton } from "@/design/copy-button";
import { LoadButton } from "@/design/load-button";
import { Menu, MenuSection } from "@/design/menu";

const DOCUMENTS: { as: ExportFormat; label: string; note: string }[] = [
  { as: "html", label: "Page", note: "one HTML file" },
  { as: "markdown", label: "Markdown", note: "text" },
  { as: "json", label: "JSON", note: "the whole history" },
  { as: "jsonl", label: "JSON lines", note: "event by event" },
  { as: "uimessages", label: "UI messages", note: "AI SDK" },
];

const REQUESTS: { as: ExportFormat; label: string }[] = [
  { as: "anthropic", label: "Anthropic" },
  { as: "responses", label: "OpenAI Responses" },
  { as: "openai-chat", label: "OpenAI Chat" },
  { as: "openrouter", label: "OpenRouter" },
  { as: "gemini", label: "Gemini" },
];

export function SessionMenu({ session }: { session: SessionItem }) {
  const [redact, setRedact] = useState(false);
  const address = (as: ExportFormat) =>
    `${sessionPath(session.id)}/export${queryString({ as, redact: redact || null })}`;
  return (
    <Menu label="Share" icon="share" title="Copy the link, export, copy as a request">
      <MenuSection title="This session">
        <CopyButton
          className="menu-item"
          label="Copy link to this session"
          text={() => location.origin + sessionPage(session.id)}
        />
      </MenuSection>
      <MenuSection title="Export">
        {DOCUMENTS.map(({ as, label, note }) => (
          <LoadButton key={as} className="menu-item" load={() => download(address(as))}>
            {label} <span className="menu-note">{note}</span>
          </LoadButton>
        ))}
        <label className="menu-item">
          <input type="checkbox" checked={redact} onChange={(event) => setRedact(event.target.checked)} />
          Redact secrets
        </label>
      </MenuSection>
      <MenuSection title="Copy as a request">
        {REQUESTS.map(({ as, label }) => (
          <CopyButton key={as} className="menu-item" label={label} text={() => getText(address(as))} />
        ))}
      </MenuSection>
    </Menu>
  );
}
