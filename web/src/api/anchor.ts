/** The end of a session's address: `#<message id>`, or `#<message id>/<index of the part>`. */

export interface Anchor {
  messageId: string;
  part: number | null;
}

export function formatAnchor(messageId: string, part?: number | null): string {
  // Colons are common in ids and mean nothing in a fragment.
  const message = encodeURIComponent(messageId).replaceAll("%3A", ":");
  return part == null ? message : `${message}/${part}`;
}

export function parseAnchor(hash: string): Anchor | null {
  const [message = "", part = ""] = hash.replace(/^#/, "").split("/", 2);
  if (!message) return null;
  return { messageId: decodePart(message), part: /^\d+$/.test(part) ? Number(part) : null };
}

/** A piece of an address, or the piece as it is where it is not encoded. */
export function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
