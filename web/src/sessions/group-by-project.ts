/** Sessions under the folder they worked in, the folder of the first session first. */

import type { SessionItem } from "@/api/types";
import { projectLabels } from "@/filters/project-label";
import type { SessionGroup } from "./session-group";

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
