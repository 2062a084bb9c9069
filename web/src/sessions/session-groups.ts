/** The orders of the list, and its sessions under headings: the day of the reader's calendar, or the project. */

import type { SessionItem } from "@/api/types";
import { projectLabels } from "@/filters/project-label";
import { dayKey, formatDay } from "@/format/time";

export interface SessionGroup {
  key: string;
  title: string;
  sessions: SessionItem[];
  /** The moment that put a session here, where the title is its day: a row then shows the time of that day. */
  momentOf?: (session: SessionItem) => string | undefined;
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
        momentOf,
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

/** The last session of each chain of continuations, with the earlier ones of that chain: the newest first. */
export interface Chains {
  sessions: SessionItem[];
  earlier: ReadonlyMap<string, SessionItem[]>;
}

/**
 * Folds each session that another one continues under that one. Where several continue the same session, the first of
 * them in this order takes it.
 */
export function foldChains(sessions: SessionItem[]): Chains {
  const byId = new Map(sessions.map((session) => [session.id, session]));
  const continued = new Set<string>();
  const parents = new Map<string, SessionItem>();
  for (const session of sessions) {
    const parent = continuedBy(session, byId);
    if (!parent || continued.has(parent.id) || leadsTo(parents, parent, session)) continue;
    continued.add(parent.id);
    parents.set(session.id, parent);
  }
  const heads = sessions.filter(({ id }) => !continued.has(id));
  const chained = heads.filter(({ id }) => parents.has(id));
  return { sessions: heads, earlier: new Map(chained.map(({ id }) => [id, chainOf(id, parents)])) };
}

function continuedBy(session: SessionItem, byId: Map<string, SessionItem>): SessionItem | undefined {
  const relationship = session.relationships?.[0];
  return relationship?.kind === "continuation" ? byId.get(relationship.parent_session_id) : undefined;
}

/** Whether a session is among the earlier ones of another: logs may name each other. */
function leadsTo(parents: Map<string, SessionItem>, from: SessionItem, to: SessionItem): boolean {
  return from === to || chainOf(from.id, parents).includes(to);
}

function chainOf(id: string, parents: Map<string, SessionItem>): SessionItem[] {
  const chain: SessionItem[] = [];
  for (let parent = parents.get(id); parent; parent = parents.get(parent.id)) chain.push(parent);
  return chain;
}

/** Commands that begin or end a session, where its agent records them as prompts. */
const LEAVE_NOTHING: ReadonlySet<string> = new Set(["/clear", "/new", "/exit", "/quit"]);

/** Whether nothing was asked and nothing answered in a session, and the user has said nothing about it. */
export function isEmpty({ counts = {}, usage, children, annotations, first_prompt }: SessionItem): boolean {
  if (annotations || children || usage?.calls) return false;
  if (counts.steps || counts.tool_calls || counts.files) return false;
  return !first_prompt || LEAVE_NOTHING.has(first_prompt.trim());
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
