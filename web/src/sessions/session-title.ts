/** The title of a session in lists; its id where it has no title and no prompt. */

interface Titled {
  id: string;
  title?: string | null;
}

export function titleOf({ id, title }: Titled): string {
  return title?.replace(/\s+/g, " ").trim() || `Untitled ${id.slice(id.indexOf(":") + 1).slice(0, 8)}`;
}
