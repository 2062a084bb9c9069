/** What stands in the place of words that a hub does not have. */

import type { Message } from "@/api/types";
import { useSessionContext } from "@/session/session-context";

const NOT_SENT = "Not sent: this session came at the upload level metrics.";

const WITHHELD =
  "Withheld until its machine pushes again: these words came with a session at the level full, which is gone.";

/** Why a message has no words; null where it has some, or never had any as far as is known. */
export function useMissingWords(message: Message): string | null {
  const { level } = useSessionContext();
  if (level === null || (message.parts?.length ?? 0) > 0 || message.error) return null;
  if (level === "metrics") return NOT_SENT;
  // Where the hub takes words out, nothing is left but the id and the role; an agent's empty answer has more.
  const isBare = !message.model && !message.usage && !message.created_at && !message.stop_reason;
  return isBare ? WITHHELD : null;
}
