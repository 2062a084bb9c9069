/** Whether the server is a hub, who is signed in there, and whose sessions are shown. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getJson, sendJson } from "@/api/client";
import type { Items, SessionItem } from "@/api/types";
import { useStatus } from "@/shell/status-line";
import { ME, PEOPLE } from "./paths";
import type { Me, Pusher } from "./schema";

export function useIsHub(): boolean {
  return useStatus()?.hub ?? false;
}

/** Who is signed in; null on one's own machine, and until it is known. */
export function useMe(): Me | null {
  const enabled = useIsHub();
  const me = useQuery({
    queryKey: [ME],
    queryFn: ({ signal }) => getJson<Me>(ME, {}, signal),
    enabled,
  });
  return me.data ?? null;
}

/** The people of whom one sees sessions; nobody on one's own machine. */
export function usePeople(): Pusher[] {
  const enabled = useIsHub();
  const people = useQuery({
    queryKey: [PEOPLE],
    queryFn: ({ signal }) => getJson<Items<Pusher>>(PEOPLE, {}, signal),
    enabled,
  });
  return people.data?.items ?? [];
}

/** Whether a session may be changed from here: on a hub, only one's own. */
export function useIsOwn(session: SessionItem | undefined): boolean {
  return useOwns()(session);
}

/** Tells which sessions may be changed from here. */
export function useOwns(): (session: SessionItem | undefined) => boolean {
  const isHub = useIsHub();
  const me = useMe();
  return (session) => !isHub || (me?.user != null && session?.ownership?.user === me.user.id);
}

interface Request {
  method: "PATCH" | "POST" | "PUT" | "DELETE";
  path: string;
  body?: unknown;
}

/** Something that changes the hub; everything that is shown of people is asked for again. */
export function useHubChange<Answer = unknown>() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ method, path, body }: Request) => sendJson<Answer>(method, path, body),
    onSuccess: () =>
      queries.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).startsWith("/hub/") }),
  });
}
