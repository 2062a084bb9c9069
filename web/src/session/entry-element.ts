/** The element of an entry, while it is near enough to be on the page. */

export function entryAt(scroller: HTMLElement | null, index: number): HTMLElement | null {
  return scroller?.querySelector<HTMLElement>(`.entry[data-index="${index}"]`) ?? null;
}
