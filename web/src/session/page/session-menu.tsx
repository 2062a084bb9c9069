/** The share menu of a session: its link, exports, provider requests, and its removal. */

import { useState } from "react";
import { useLocation } from "wouter";
import { getText } from "@/api/client";
import { download } from "@/api/files";
import { sessionPage } from "@/api/paths";
import type { ExportFormat, SessionItem } from "@/api/types";
import { CopyButton } from "@/design/copy-button";
import { LoadButton } from "@/design/load-button";
import { Menu, MenuSection } from "@/design/menu";
import { Problem } from "@/design/problem";
import { trashPath } from "@/hub/paths";
import { useHubChange, useIsHub } from "@/hub/use-hub";
import { DOCUMENTS, exportPath } from "@/sessions/documents";
import { ForgetDialog } from "@/sessions/forget-dialog";

const REQUESTS: { as: ExportFormat; label: string }[] = [
  { as: "anthropic", label: "Anthropic" },
  { as: "responses", label: "OpenAI Responses" },
  { as: "openai-chat", label: "OpenAI Chat" },
  { as: "openrouter", label: "OpenRouter" },
  { as: "gemini", label: "Gemini" },
];

interface SessionMenuProps {
  session: SessionItem;
  /** Whether it may be forgotten from here. */
  isOwn: boolean;
}

export function SessionMenu({ session, isOwn }: SessionMenuProps) {
  const [redact, setRedact] = useState(false);
  const [forgetting, setForgetting] = useState(false);
  const [, navigate] = useLocation();
  const isHub = useIsHub();
  const trash = useHubChange();
  const moveToTrash = () =>
    trash.mutate(
      { method: "PUT", path: trashPath(session.id) },
      { onSuccess: () => navigate("/team/trash") },
    );
  const address = (as: ExportFormat) => exportPath(session.id, as, redact);
  return (
    <>
      <Menu label="Share" icon="share" title="Copy the link, export, copy as a request, forget">
        <MenuSection title="This session">
          <CopyButton
            className="menu-item"
            label="Copy link to this session"
            text={() => location.origin + sessionPage(session.id)}
          />
        </MenuSection>
        <MenuSection title="Export">
          <label className="menu-item">
            <input type="checkbox" checked={redact} onChange={(event) => setRedact(event.target.checked)} />
            Redact secrets
          </label>
          {DOCUMENTS.map(({ as, label, note }) => (
            <LoadButton key={as} className="menu-item" load={() => download(address(as))}>
              {label} <span className="menu-note">{note}</span>
            </LoadButton>
          ))}
        </MenuSection>
        <MenuSection title="Copy as a request">
          {REQUESTS.map(({ as, label }) => (
            <CopyButton key={as} className="menu-item" label={label} text={() => getText(address(as))} />
          ))}
        </MenuSection>
        {isOwn && (
          <MenuSection title="Remove">
            {isHub && (
              <button type="button" className="menu-item" onClick={moveToTrash} disabled={trash.isPending}>
                Move to the trash <span className="menu-note">for 30 days</span>
              </button>
            )}
            {trash.isError && <Problem error={trash.error} what="Moving it to the trash" />}
            <button type="button" className="menu-item" onClick={() => setForgetting(true)}>
              Forget this session… <span className="menu-note">permanently</span>
            </button>
          </MenuSection>
        )}
      </Menu>
      {forgetting && (
        <ForgetDialog
          sessions={[session]}
          onClose={() => setForgetting(false)}
          onForgotten={() => navigate("/")}
        />
      )}
    </>
  );
}
