/** Sessions grouped under headings: the day of the reader's calendar, or the project. */

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
