/** Name, tags, note and archive of a session, in a small form. */

import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { SessionItem } from "@/api/types";
import { Icon } from "@/design/icon";
import { titleOf } from "@/sessions/session-title";
import { annotationsOf, parseTags, useAnnotate } from "./use-annotate";
import "./annotations.css";

export function AnnotateButton({ session }: { session: SessionItem }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        className="icon-button"
        aria-label="Name, tags and note"
        title="Name, tags and note (e)"
        data-key="e"
        onClick={() => setOpen(true)}
      >
        <Icon name="edit" size={14} />
      </button>
      {open && <AnnotateDialog session={session} onClose={() => setOpen(false)} />}
    </>
  );
}

function AnnotateDialog({ session, onClose }: { session: SessionItem; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const annotate = useAnnotate(session);
  const annotations = annotationsOf(session);
  useEffect(() => dialog.current?.showModal(), []);

  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim() || null;
    annotate.mutate(
      {
        title: text("title"),
        tags: parseTags(text("tags") ?? ""),
        note: text("note"),
        archived: form.has("archived"),
      },
      { onSuccess: onClose },
    );
  };
  const saveOnCtrlEnter = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  return (
    <dialog ref={dialog} className="annotate" aria-label={`About ${titleOf(session)}`} onClose={onClose}>
      <form onSubmit={save} onKeyDown={saveOnCtrlEnter}>
        <label>
          Name
          <input
            className="field"
            name="title"
            defaultValue={annotations.title ?? ""}
            placeholder={titleOf(session)}
          />
        </label>
        <label>
          Tags
          <input
            className="field"
            name="tags"
            defaultValue={annotations.tags.join(", ")}
            placeholder="separated by commas"
          />
        </label>
        <label>
          Note
          <textarea className="field" name="note" rows={4} defaultValue={annotations.note ?? ""} />
        </label>
        <label className="annotate-check">
          <input type="checkbox" name="archived" defaultChecked={annotations.archived} />
          Archived: hidden in the list, still found by search
        </label>
        {annotate.isError && (
          <p className="annotate-problem" role="alert">
            Not saved: {annotate.error.message}
          </p>
        )}
        <p className="annotate-buttons">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="button primary" disabled={annotate.isPending}>
            Save
          </button>
        </p>
      </form>
    </dialog>
  );
}
