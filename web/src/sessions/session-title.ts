/** What a session is called in lists; one that nobody named and that has no prompt is called by its id. */

import type { Session } from "@/api/types";

export function titleOf(session: Session): string {
  return session.title?.replace(/\s+/g, " ").trim() || `Untitled ${session.external_id.slice(0, 8)}`;
}
