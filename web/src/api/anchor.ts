/** The end of a session's address: `#<message id>`, or `#<message id>/<part id>`; a part id that begins with the
 * message's is cut down to what follows (".2"). */

export interface Anchor {
  messageId: string;
  partId: string | null;
}

/** In the place of a part: all reasoning of the message. */
export const REASONING = "reasoning";

export function formatAnchor(messageId: string, partId?: string | null): string {
  if (!partId || partId === messageId) return encode(messageId);
  const prefix = `${messageId}.`;
  const part = partId.startsWith(prefix) ? `.${partId.slice(prefix.length)}` : partId;
  return `${encode(messageId)}/${encode(part)}`;
}

export function parseAnchor(hash: string): Anchor | null {
  const [message, part] = hash.replace(/^#/, "").split("/", 2).map(decode);
  if (!message) return null;
  if (!part) return { messageId: message, partId: null };
  return { messageId: message, partId: part.startsWith(".") ? message + part : part };
}

/** Colons are common in ids and mean nothing in a fragment. */
function encode(id: string): string {
  return encodeURIComponent(id).replaceAll("%3A", ":");
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
