/** Forks and continuations go under the session they came out of, where both stand under one day. */

import type { SessionItem } from "@/api/types";

/** The sessions that head a family, each where the first of its family stood. The others are among their children. */
export function foldFamilies(sessions: SessionItem[]): SessionItem[] {
  const byId = new Map(sessions.map((session) => [session.id, session]));
  return [...new Set(sessions.map((session) => headOf(session, byId)))];
}

function headOf(session: SessionItem, byId: Map<string, SessionItem>): SessionItem {
  const seen = new Set<SessionItem>();
  let head = session;
  while (!seen.has(head)) {
    seen.add(head);
    const parent = byId.get(head.relationships?.[0]?.parent_session_id ?? "");
    if (!parent) return head;
    head = parent;
  }
  // Sessions that name each other as parent: nobody is the head, each stands for itself.
  return session;
}
