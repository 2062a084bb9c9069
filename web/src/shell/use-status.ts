/** What the server is doing. Everything on the page is asked for again once the store has changed. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { getJson } from "@/api/client";
import { STATUS } from "@/api/paths";
import type { StatusAnswer } from "@/api/types";

const BUSY = 1_000;
const IDLE = 4_000;

export function useStatus(): StatusAnswer | null {
  const queries = useQueryClient();
  const { data } = useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => getJson<StatusAnswer>(STATUS, {}, signal),
    refetchInterval: (query) => (isBusy(query.state.data) ? BUSY : IDLE),
  });
  const seen = useRef<number | null>(null);
  const current = data?.change_sequence ?? null;
  useEffect(() => {
    if (seen.current !== null && current !== seen.current) {
      queries.invalidateQueries({
        predicate: (query) => query.queryKey[0] !== "status" && query.queryKey[0] !== "blob",
      });
    }
    seen.current = current;
  }, [current, queries]);
  return data ?? null;
}

export function isBusy(status: StatusAnswer | null | undefined): boolean {
  return status?.sync.state === "running" || (status?.search.pending ?? 0) > 0;
}
