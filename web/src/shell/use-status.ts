/** What the server is doing, and whether it is there. */

import { queryOptions, useQuery } from "@tanstack/react-query";
import { ApiError, getJson } from "@/api/client";
import { STATUS } from "@/api/paths";
import type { StatusResponse } from "@/api/types";

const BUSY = 1_000;
const IDLE = 4_000;

const QUERY = queryOptions({
  queryKey: ["status"],
  queryFn: ({ signal }) => getJson<StatusResponse>(STATUS, {}, signal),
  refetchInterval: (query) => (isBusy(query.state.data) ? BUSY : IDLE),
});

export function useStatus(): StatusResponse | null {
  return useQuery(QUERY).data ?? null;
}

/** Whether nothing answers any more: what is shown may be old. */
export function useIsAway(): boolean {
  const { error } = useQuery(QUERY);
  return error !== null && !(error instanceof ApiError);
}

function isBusy(status: StatusResponse | undefined): boolean {
  return status?.sync.state === "running" || (status?.search.unindexed ?? 0) > 0;
}
