/** The orders of the list, and its sessions under headings: the day of the reader's calendar, or the project. */

import type { SessionItem } from "@/api/types";
import { projectLabels } from "@/filters/project-label";
import { dayKey, formatDay } from "@/format/time";

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

/** Groups sessions by day. Their order stays; a day that comes twice (clocks differ) is two groups. */
export function groupByDay(
  sessions: SessionItem[],
  momentOf: (session: SessionItem) => string | undefined,
  now: Date,
): SessionGroup[] {
  const groups: SessionGroup[] = [];
  for (const session of sessions) {
    const moment = momentOf(session);
    const day = moment ? dayKey(moment) : "unknown";
    const last = groups.at(-1);
    if (last?.title && last.key.startsWith(day)) last.sessions.push(session);
    else
      groups.push({
        key: `${day}/${session.id}`,
        title: moment ? formatDay(moment, now) : "Time unknown",
        sessions: [session],
      });
  }
  return groups;
}

/** Groups sessions by the folder they worked in; the folder of the first session comes first. */
export function groupByProject(sessions: SessionItem[]): SessionGroup[] {
  const groups = new Map<string, SessionItem[]>();
  for (const session of sessions) {
    const path = session.project?.path ?? "";
    const group = groups.get(path);
    if (group) group.push(session);
    else groups.set(path, [session]);
  }
  const projects = sessions.flatMap(({ project }) => (project ? [project] : []));
  const unique = [...new Map(projects.map((project) => [project.path, project])).values()];
  const labels = projectLabels(unique);
  return [...groups].map(([path, members]) => ({
    key: path,
    title: labels.get(path) ?? "No project",
    sessions: members,
  }));
}

/** The sessions without those that are folded; each root is where the first session of its tree was. */
export function foldForks(sessions: SessionItem[]): SessionItem[] {
  const byId = new Map(sessions.map((session) => [session.id, session]));
  return [...new Set(sessions.map((session) => rootOf(session, byId)))];
}

function rootOf(session: SessionItem, byId: Map<string, SessionItem>): SessionItem {
  const seen = new Set<SessionItem>();
  let root = session;
  while (!seen.has(root)) {
    seen.add(root);
    const parent = byId.get(root.relationships?.[0]?.parent_session_id ?? "");
    if (!parent) return root;
    root = parent;
  }
  // Sessions that name each other as parent: none is the root, each has a row of its own.
  return session;
}

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
