/** A short list that filters offer; empty until it is there. */

import { useQuery } from "@tanstack/react-query";
import { getJson } from "./client";
import type { Items } from "./types";

export function useItems<Item>(path: string): Item[] {
  const query = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => getJson<Items<Item>>(path, {}, signal),
  });
  return query.data?.items ?? [];
}
