/** What is known of a session: loaded once, then kept up to date by the changes that its stream reports. */

import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { SessionResponse, SessionUpdate } from "@/api/types";

const sessionKey = (id: string) => ["session", id];
const updateKey = (id: string) => ["session-update", id];

export function useSession(id: string) {
  const queries = useQueryClient();
  return useQuery({
    queryKey: sessionKey(id),
    queryFn: async ({ signal }) => {
      const answer = await getJson<SessionResponse>(sessionPath(id), {}, signal);
      // A change may be reported while an older answer is on its way.
      const update = queries.getQueryData<SessionUpdate>(updateKey(id));
      return update ? withUpdate(answer, update) : answer;
    },
  });
}

export function applyUpdate(queries: QueryClient, id: string, update: SessionUpdate): void {
  queries.setQueryData(updateKey(id), update);
  queries.setQueryData<SessionResponse>(sessionKey(id), (answer) => answer && withUpdate(answer, update));
}

/** Loads the session again unless what is known was read at `sequence` or later. */
export function renewSession(queries: QueryClient, id: string, sequence: number): boolean {
  // A store that was made anew counts from the start.
  queries.removeQueries({ queryKey: updateKey(id) });
  const read = queries.getQueryData<SessionResponse>(sessionKey(id))?.change_sequence ?? -1;
  if (read >= sequence) return false;
  queries.invalidateQueries({ queryKey: sessionKey(id) });
  return true;
}

/** A session that is gone is asked for once more: the answer says what became of it. */
export function reloadSession(queries: QueryClient, id: string): void {
  queries.invalidateQueries({ queryKey: sessionKey(id) });
}

function withUpdate(answer: SessionResponse, { sequence, session }: SessionUpdate): SessionResponse {
  return sequence > answer.change_sequence ? { ...answer, session } : answer;
}
