/** The orders of the list, besides the usual one (last active first). */

export const SORTS = [
  { value: "created", label: "Started last" },
  { value: "cost", label: "Highest cost" },
  { value: "tokens", label: "Most tokens" },
  { value: "messages", label: "Most messages" },
];

/** Whether the order is one of time, so that days make sense as headings. */
export function isByTime(sort: string): boolean {
  return sort === "" || sort === "updated" || sort === "created";
}
