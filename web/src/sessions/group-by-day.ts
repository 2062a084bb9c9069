/** Sessions under the day of the reader's calendar that the list is sorted by. */

import type { SessionItem } from "@/api/types";
import { dayKey, formatDay } from "@/format/time";
import type { SessionGroup } from "./session-group";

/** The order of the sessions stays; a day that comes twice (clocks differ) is two groups. */
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
