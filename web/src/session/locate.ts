/** Where a message stands in a session. */

import { getJson } from "@/api/client";
import { messagePath } from "@/api/paths";
import type { MessageAnswer } from "@/api/types";

export async function locate(sessionId: string, messageId: string): Promise<number> {
  const answer = await getJson<MessageAnswer>(messagePath(messageId), { session: sessionId });
  const place = answer.memberships.find((membership) => membership.session_id === sessionId);
  if (!place) throw new Error(`This session does not hold message ${messageId}.`);
  return place.position;
}
