/** What the server is doing. Everything on the page is asked for again once the store has changed. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { getJson } from "@/api/client";
import { STATUS } from "@/api/paths";
import type { StatusAnswer } from "@/api/types";

const BUSY = 1_000;
const IDLE = 4_000;

/** What a change of the store cannot change. */
const UNTOUCHED: ReadonlySet<unknown> = new Set(["status", "text"]);

export function useStatus(): StatusAnswer | null {
  const { data } = useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => getJson<StatusAnswer>(STATUS, {}, signal),
    refetchInterval: (query) => (isBusy(query.state.data) ? BUSY : IDLE),
  });
  return data ?? null;
}

/** For the frame around all pages, once. */
export function useRefresh(status: StatusAnswer | null): void {
  const queries = useQueryClient();
  const seen = useRef<number | null>(null);
  const current = status?.change_sequence ?? null;
  useEffect(() => {
    if (seen.current !== null && current !== seen.current) {
      queries.invalidateQueries({ predicate: ({ queryKey }) => !UNTOUCHED.has(queryKey[0]) });
    }
    seen.current = current;
  }, [current, queries]);
}

function isBusy(status: StatusAnswer | undefined): boolean {
  return status?.sync.state === "running" || (status?.search.pending ?? 0) > 0;
}
