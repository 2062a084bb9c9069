/** The share menu of a session: its link, the command that resumes it, exports, provider requests. */

import { useState } from "react";
import { getText, queryString } from "@/api/client";
import { download } from "@/api/files";
import { sessionPage, sessionPath } from "@/api/paths";
import type { ExportFormat, ResumeCommand, SessionItem } from "@/api/types";
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
  const resume = session.resume && resumeLine(session.resume);
  return (
    <Menu label="Share" icon="share">
      <MenuSection title="This session">
        <CopyButton
          className="menu-item"
          label="Copy link to this session"
          text={() => location.origin + sessionPage(session.id)}
        />
        {resume && (
          <>
            <CopyButton className="menu-item" label="Copy command to resume it" text={() => resume} />
            <code className="menu-code">{resume}</code>
          </>
        )}
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

/** The command with which an agent resumes its session, for a shell. */
export function resumeLine({ folder, command }: ResumeCommand): string {
  const resume = command.map(quoted).join(" ");
  return folder ? `cd ${quoted(folder)} && ${resume}` : resume;
}

/** Quoted as one word of a shell, since its text comes from a log. */
function quoted(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
