/** The sessions that are selected in the list, for what is done with several at once. */

import { createContext, use, useCallback, useMemo, useState } from "react";
import type { SessionItem } from "@/api/types";

export interface Selection {
  ids: ReadonlySet<string>;
  toggle: (id: string) => void;
}

/** Null while nothing can be selected. */
export const SelectionContext = createContext<Selection | null>(null);

export function useSelection(): Selection | null {
  return use(SelectionContext);
}

interface Selecting {
  /** Null until selecting is begun. */
  selection: Selection | null;
  begin: () => void;
  end: () => void;
}

export function useSelecting(): Selecting {
  const [ids, setIds] = useState<ReadonlySet<string> | null>(null);
  const toggle = useCallback((id: string) => setIds((selected) => toggled(selected ?? new Set(), id)), []);
  const selection = useMemo(() => ids && { ids, toggle }, [ids, toggle]);
  const begin = useCallback(() => setIds(new Set()), []);
  const end = useCallback(() => setIds(null), []);
  return { selection, begin, end };
}

function toggled(ids: ReadonlySet<string>, id: string): Set<string> {
  const next = new Set(ids);
  if (!next.delete(id)) next.add(id);
  return next;
}

/** Those of the selection that are still listed, in the order of the list. */
export function selectedOf(sessions: SessionItem[], { ids }: Selection): SessionItem[] {
  return sessions.filter(({ id }) => ids.has(id));
}
