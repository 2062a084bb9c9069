/** What is done with the selected sessions: archive, tag, export, forget. */

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { annotationsOf, parseTags, type Said } from "@/annotations/annotations";
import { sendJson } from "@/api/client";
import { download } from "@/api/files";
import { sessionPath } from "@/api/paths";
import type { ExportFormat, SessionItem } from "@/api/types";
import { FormDialog } from "@/design/form-dialog";
import { Icon } from "@/design/icon";
import { LoadButton } from "@/design/load-button";
import { Menu, MenuSection } from "@/design/menu";
import { plural } from "@/format/numbers";
import { useOwns } from "@/hub/use-hub";
import { DOCUMENTS, exportPath } from "./documents";
import { ForgetDialog } from "./forget-dialog";

interface SelectionBarProps {
  sessions: SessionItem[];
  onEnd: () => void;
}

export function SelectionBar({ sessions, onEnd }: SelectionBarProps) {
  const [asking, setAsking] = useState<"tags" | "forget" | null>(null);
  const annotate = useAnnotateAll(sessions);
  const none = sessions.length === 0;
  const mayChange = sessions.every(useOwns());
  const archived = !none && sessions.every(({ annotations }) => annotations?.archived);
  const close = () => setAsking(null);
  return (
    <section className="selection-bar" aria-label="Selected sessions">
      <span className="selection-count" aria-live="polite">
        {sessions.length} selected
      </span>
      {mayChange && (
        <>
          <button
            type="button"
            className="button"
            disabled={none || annotate.isPending}
            onClick={() => annotate.mutate(() => ({ archived: !archived }), { onSuccess: onEnd })}
          >
            <Icon name="box" size={14} /> {archived ? "Unarchive" : "Archive"}
          </button>
          <button type="button" className="button" disabled={none} onClick={() => setAsking("tags")}>
            <Icon name="tag" size={14} /> Tag
          </button>
        </>
      )}
      {!none && <ExportMenu sessions={sessions} />}
      {mayChange && (
        <button type="button" className="button" disabled={none} onClick={() => setAsking("forget")}>
          <Icon name="trash" size={14} /> Forget…
        </button>
      )}
      <button type="button" className="button" onClick={onEnd}>
        Done
      </button>
      {annotate.error && asking === null && (
        <p className="form-problem" role="alert">
          Not saved: {annotate.error.message}
        </p>
      )}
      {asking === "tags" && (
        <FormDialog
          label={`Tag ${plural(sessions.length, "session")}`}
          onSave={(text) => annotate.mutate(withTags(parseTags(text("tags") ?? "")), { onSuccess: close })}
          onClose={close}
          isSaving={annotate.isPending}
          error={annotate.error}
        >
          <label>
            Tags to add
            <input className="field" name="tags" placeholder="separated by commas" />
          </label>
        </FormDialog>
      )}
      {asking === "forget" && <ForgetDialog sessions={sessions} onClose={close} onForgotten={onEnd} />}
    </section>
  );
}

function ExportMenu({ sessions }: { sessions: SessionItem[] }) {
  const [redact, setRedact] = useState(false);
  const exportAll = async (as: ExportFormat) => {
    // One after the other: a browser asks once whether the page may save several files.
    for (const { id } of sessions) await download(exportPath(id, as, redact));
  };
  return (
    <Menu label="Export" icon="share" title="Save each selected session as a file">
      <MenuSection title={`Export ${plural(sessions.length, "session")}`}>
        <label className="menu-item">
          <input type="checkbox" checked={redact} onChange={(event) => setRedact(event.target.checked)} />
          Redact secrets
        </label>
        {DOCUMENTS.map(({ as, label, note }) => (
          <LoadButton key={as} className="menu-item" load={() => exportAll(as)}>
            {label} <span className="menu-note">{note}</span>
          </LoadButton>
        ))}
      </MenuSection>
    </Menu>
  );
}

function withTags(added: string[]) {
  return (session: SessionItem) => ({ tags: [...new Set([...annotationsOf(session).tags, ...added])] });
}

/** Changes what is said about each of them. */
function useAnnotateAll(sessions: SessionItem[]) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (changesOf: (session: SessionItem) => Partial<Said>) => {
      for (const session of sessions)
        await sendJson<SessionItem>("PATCH", sessionPath(session.id), changesOf(session));
    },
    // Also after a failure: some of them may be changed.
    onSettled: () =>
      Promise.all(["sessions", "tags"].map((key) => queries.invalidateQueries({ queryKey: [key] }))),
  });
}
