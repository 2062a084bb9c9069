/** What the server is doing. */

import { useQuery } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { STATUS } from "@/api/paths";
import type { StatusAnswer } from "@/api/types";

const BUSY = 1_000;
const IDLE = 4_000;

export function useStatus(): StatusAnswer | null {
  const { data } = useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => getJson<StatusAnswer>(STATUS, {}, signal),
    refetchInterval: (query) => (isBusy(query.state.data) ? BUSY : IDLE),
  });
  return data ?? null;
}

function isBusy(status: StatusAnswer | undefined): boolean {
  return status?.sync.state === "running" || (status?.search.pending ?? 0) > 0;
}
