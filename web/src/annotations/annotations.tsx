/** What the user says about a session: a star, a name, tags, a note. It is kept in turnlog, never in the agent's log. */

import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { sendJson } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { Annotations, SessionItem } from "@/api/types";
import { FormDialog } from "@/design/form-dialog";
import { Icon } from "@/design/icon";
import { titleOf } from "@/sessions/session-title";
import "./annotations.css";

interface AnnotationButtonProps {
  session: SessionItem;
  /** Whether a key of the list presses it. */
  hasKey?: boolean;
}

/** Name, tags, note and archive of a session, in a small form. */
export function AnnotateButton({ session, hasKey }: AnnotationButtonProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        className="icon-button"
        aria-label="Name, tags and note"
        title={hasKey ? "Name, tags and note (e)" : "Name, tags and note"}
        data-key={hasKey ? "e" : undefined}
        onClick={() => setOpen(true)}
      >
        <Icon name="edit" size={14} />
      </button>
      {open && <AnnotateDialog session={session} onClose={() => setOpen(false)} />}
    </>
  );
}

function AnnotateDialog({ session, onClose }: { session: SessionItem; onClose: () => void }) {
  const annotate = useAnnotate(session);
  const annotations = annotationsOf(session);
  return (
    <FormDialog
      label={`About ${titleOf(session)}`}
      onSave={(text, form) =>
        annotate.mutate(
          {
            title: text("title"),
            tags: parseTags(text("tags") ?? ""),
            note: text("note"),
            archived: form.has("archived"),
          },
          { onSuccess: onClose },
        )
      }
      onClose={onClose}
      isSaving={annotate.isPending}
      error={annotate.error}
    >
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
      <label className="form-check">
        <input type="checkbox" name="archived" defaultChecked={annotations.archived} />
        Archived: hidden in the list, still found by search
      </label>
    </FormDialog>
  );
}

/** A session that one wants to find again. */
export function StarButton({ session, hasKey }: AnnotationButtonProps) {
  const annotate = useAnnotate(session);
  const starred = annotate.isPending ? annotate.variables.starred : session.annotations?.starred;
  return (
    <button
      type="button"
      className="icon-button star"
      aria-pressed={starred ?? false}
      aria-label="Star"
      title={starred ? "Starred" : hasKey ? "Star (s)" : "Star"}
      data-key={hasKey ? "s" : undefined}
      onClick={() => annotate.mutate({ starred: !session.annotations?.starred })}
    >
      <Icon name="star" size={14} />
    </button>
  );
}

/** Tags and note of the open session, where there are any. */
export function AnnotationLine({ session: { annotations } }: { session: SessionItem }) {
  if (!annotations?.note && !annotations?.tags.length) return null;
  return (
    <p className="annotation-line">
      {annotations.tags.map((tag) => (
        <Link key={tag} href={`/?tag=${encodeURIComponent(tag)}`} className="tag">
          {tag}
        </Link>
      ))}
      {annotations.note && <span>{annotations.note}</span>}
    </p>
  );
}

/** What a session is filed under. */
export function TagLabels({ tags }: { tags: string[] | undefined }) {
  return tags?.map((tag) => (
    <span key={tag} className="tag">
      {tag}
    </span>
  ));
}

/** The annotations; only changed ones are sent. */
export type Said = Omit<Annotations, "changed_at">;

const NOTHING: Said = { title: null, starred: false, archived: false, tags: [], note: null, pins: [] };

/** What was said about a session; nothing yet is empty. */
export function annotationsOf(session: SessionItem): Said {
  if (!session.annotations) return NOTHING;
  const { changed_at: _, ...annotations } = session.annotations;
  return annotations;
}

export function useAnnotate(session: SessionItem) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (changes: Partial<Said>) => sendJson<SessionItem>("PATCH", sessionPath(session.id), changes),
    onSuccess: () => refresh(queries),
  });
}

function refresh(queries: QueryClient): Promise<void> {
  return queries.invalidateQueries({ predicate: ({ queryKey }) => SHOWING.has(queryKey[0]) });
}

/** Queries whose answers contain annotations. */
const SHOWING: ReadonlySet<unknown> = new Set([
  "sessions",
  "session",
  "search",
  "palette",
  "tags",
  "outline",
]);

/** "a, b ,,a" -> ["a", "b"]. */
export function parseTags(text: string): string[] {
  const tags = text.split(",").map((tag) => tag.replace(/\s+/g, " ").trim());
  return [...new Set(tags.filter(Boolean))];
}
