/** What a report is divided by, and the lists of sessions that its rows lead to. */

import { queryString } from "@/api/client";
import { sessionPage } from "@/api/paths";
import type { UsageBy } from "@/api/types";
import { daysOf } from "@/charts/calendar";

export const BY: Record<UsageBy, string> = {
  hour: "Hour",
  day: "Day",
  week: "Week",
  month: "Month",
  block: "Block",
  model: "Model",
  project: "Project",
  session: "Session",
  agent: "Agent",
  subagent: "Subagent",
};

/** Filters that the list of sessions has too. */
export type Listed = Partial<
  Record<"agent" | "project" | "model" | "user" | "machine" | "since" | "until", string>
>;

/** Where the sessions of a row are. An hour leads to its day: the list has days. */
export function listOf(by: UsageBy, name: string, filters: Listed): string {
  if (by === "session" || by === "subagent") return sessionPage(name);
  const chosen = by === "model" || by === "project" || by === "agent" ? { [by]: name } : daysOf(name, by);
  return `/${queryString({ ...listed(filters), ...chosen })}`;
}

function listed({ agent, project, model, user, machine, since, until }: Listed) {
  return { agent, project, model, user, machine, since, until };
}
