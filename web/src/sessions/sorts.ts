/** The orders of the list, besides the default (last active first). */

export const SORTS = [
  { value: "created", label: "Recently started" },
  { value: "cost", label: "Highest cost" },
  { value: "tokens", label: "Most tokens" },
  { value: "messages", label: "Most messages" },
];

/** Whether the list is ordered by time, so that days make sense as headings. */
export function isByTime(sort: string): boolean {
  return sort === "" || sort === "updated" || sort === "created";
}
