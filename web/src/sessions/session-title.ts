/** What a session is called in lists; one that nobody named and that has no prompt is called by its id. */

interface Titled {
  id: string;
  title?: string | null;
}

export function titleOf({ id, title }: Titled): string {
  return title?.replace(/\s+/g, " ").trim() || `Untitled ${id.slice(id.indexOf(":") + 1).slice(0, 8)}`;
}
