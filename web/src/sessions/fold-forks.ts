/** Folds forks and continuations under the session they started from, where both are in the same group. */

import type { SessionItem } from "@/api/types";

/** The sessions without those that are folded; each root is where the first session of its tree was. */
export function foldForks(sessions: SessionItem[]): SessionItem[] {
  const byId = new Map(sessions.map((session) => [session.id, session]));
  return [...new Set(sessions.map((session) => rootOf(session, byId)))];
}

function rootOf(session: SessionItem, byId: Map<string, SessionItem>): SessionItem {
  const seen = new Set<SessionItem>();
  let root = session;
  while (!seen.has(root)) {
    seen.add(root);
    const parent = byId.get(root.relationships?.[0]?.parent_session_id ?? "");
    if (!parent) return root;
    root = parent;
  }
  // Sessions that name each other as parent: none is the root, each has a row of its own.
  return session;
}
