/** The moments of a session around a place, from the server's replay: page by page at either end, ahead of the player. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { getJson, type Parameters } from "@/api/client";
import { replayPath } from "@/api/paths";
import type { ReplayPage } from "@/api/types";
import { type Moment, momentsOf } from "./replay";

/** How near the end of what is known the player may come before more is asked for, in moments. */
const NEAR = 30;

interface Page {
  moments: Moment[];
  before: number | null;
  after: number | null;
}

export interface Moments {
  known: Moment[];
  /** Whether more is to come behind what is known. */
  more: boolean;
  error: Error | null;
}

const NONE: Moment[] = [];

/** Around `origin`; none while that is null. `position` is where the player stands. */
export function useMoments(
  sessionId: string,
  origin: number | null,
  position: number | null,
  speed: number,
): Moments {
  const query = useInfiniteQuery({
    queryKey: ["replay", sessionId, origin, speed],
    queryFn: async ({ pageParam, signal }): Promise<Page> => {
      const page = await getJson<ReplayPage>(replayPath(sessionId), { ...pageParam, speed }, signal);
      return { moments: momentsOf(page.items), before: page.before, after: page.after };
    },
    initialPageParam: { around: origin } as Parameters,
    getNextPageParam: ({ after }) => (after === null ? undefined : { after }),
    getPreviousPageParam: ({ before }) => (before === null ? undefined : { before }),
    select: ({ pages }) => pages.flatMap(({ moments }) => moments),
    enabled: origin !== null,
    // A session that has grown is played to where it ended; started anew, to where it ends then.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const { data: known, hasNextPage, hasPreviousPage, isFetching, fetchNextPage, fetchPreviousPage } = query;
  useEffect(() => {
    if (!known || position === null || isFetching) return;
    const here = known.findLastIndex((moment) => moment.position <= position);
    if (hasNextPage && here + NEAR >= known.length) fetchNextPage();
    else if (hasPreviousPage && here < NEAR) fetchPreviousPage();
  }, [known, position, isFetching, hasNextPage, hasPreviousPage, fetchNextPage, fetchPreviousPage]);
  const { error } = query;
  return { known: known ?? NONE, more: error === null && (hasNextPage || !known), error };
}
