/** What goes when sessions are forgotten: the server's plans for each of them, added up. */

import { sendJson } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { ForgetResponse, SessionItem } from "@/api/types";
import { formatBytes, plural } from "@/format/numbers";

export type Plans = ReadonlyMap<string, ForgetResponse>;

/** One plan for each session; none for a session that goes with another one of these, such as its subagent. */
export async function planForgetting(sessions: SessionItem[]): Promise<Plans> {
  const plans = new Map<string, ForgetResponse>();
  for (const { id } of sessions) plans.set(id, await forget(id, true));
  const goesWithAnother = (id: string) =>
    [...plans].some(([other, plan]) => other !== id && plan.session_ids.includes(id));
  return new Map([...plans].filter(([id]) => !goesWithAnother(id)));
}

/** Forgets them one by one; those before a failure are gone. */
export async function forgetAll(plans: Plans): Promise<void> {
  for (const id of plans.keys()) await forget(id, false);
}

function forget(id: string, dryRun: boolean): Promise<ForgetResponse> {
  return sendJson<ForgetResponse>("POST", `${sessionPath(id)}/forget`, { dry_run: dryRun });
}

/** "2 sessions, 14 messages, 3 archived files (1.2 MB)" */
export function describePlans(plans: Plans): string {
  const all = [...plans.values()];
  const sum = (count: (plan: ForgetResponse) => number) =>
    all.reduce((total, plan) => total + count(plan), 0);
  const sessions = new Set(all.flatMap(({ session_ids }) => session_ids));
  const files = new Set(all.flatMap((plan) => plan.files));
  // What two of them share goes with the last one, and is in the plan of neither.
  const atLeast = all.some(({ shared }) => Object.keys(shared).some((id) => sessions.has(id)));
  return [
    plural(sessions.size, "session"),
    `${atLeast ? "at least " : ""}${plural(
      sum(({ messages }) => messages),
      "message",
    )}`,
    `${plural(files.size, "archived file")} (${formatBytes(sum((plan) => plan.archived_bytes))})`,
  ].join(", ");
}

/** The number of other sessions that keep messages of these. */
export function keepersOf(plans: Plans): number {
  const all = [...plans.values()];
  const going = new Set(all.flatMap(({ session_ids }) => session_ids));
  return new Set(all.flatMap(({ shared }) => Object.keys(shared)).filter((id) => !going.has(id))).size;
}
