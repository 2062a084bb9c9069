/** Saying something about a session: a star, a name, tags, a note. It is kept in turnlog, never in the agent's log. */

import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { sendJson } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { Annotations, SessionItem } from "@/api/types";

/** The annotations; only changed ones are sent. */
export type Said = Omit<Annotations, "changed_at">;

const NOTHING: Said = { title: null, starred: false, archived: false, tags: [], note: null };

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
const SHOWING: ReadonlySet<unknown> = new Set(["sessions", "session", "search", "palette", "tags"]);

/** "a, b ,,a" -> ["a", "b"]. */
export function parseTags(text: string): string[] {
  const tags = text.split(",").map((tag) => tag.replace(/\s+/g, " ").trim());
  return [...new Set(tags.filter(Boolean))];
}
