/** Sessions that stand together under a heading. */

import type { SessionItem } from "@/api/types";

export interface SessionGroup {
  key: string;
  title: string;
  sessions: SessionItem[];
}

export const GROUPINGS = [
  { value: "day", label: "By day" },
  { value: "project", label: "By project" },
] as const;

export type Grouping = (typeof GROUPINGS)[number]["value"];

export function groupingOf(value: string): Grouping {
  return value === "project" ? "project" : "day";
}
