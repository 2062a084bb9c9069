/** Changes as the server reports them. Lists show them at once; everything else is loaded again. */

import { type InfiniteData, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { useEventStream } from "@/api/event-stream";
import { EVENTS } from "@/api/paths";
import type { SessionItem, SessionPage, SessionsUpdate } from "@/api/types";

/** Milliseconds for which changes are gathered before anything is loaded again: an import changes all the time. */
const PAUSE = 400;

/** What a change of the store cannot change. */
const UNTOUCHED: ReadonlySet<unknown> = new Set(["status", "text"]);

/** For the frame around all pages, once; not wanted where a page follows a stream of its own. */
export function useLive(wanted: boolean): void {
  const queries = useQueryClient();
  const again = useMemo(() => new Again(queries), [queries]);
  useEffect(() => () => again.stop(), [again]);
  useEventStream<SessionsUpdate>(EVENTS, "sessions", wanted, {
    onChange: ({ items }) => {
      showAtOnce(queries, items);
      again.ask();
    },
    onResync: () => again.ask(),
  });
}

/** Asks for everything that is shown, once for all changes of a moment. */
class Again {
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly queries: QueryClient) {}

  ask(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.queries.invalidateQueries({ predicate: ({ queryKey }) => !UNTOUCHED.has(queryKey[0]) });
    }, PAUSE);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}

function showAtOnce(queries: QueryClient, items: SessionItem[]): void {
  const changed = new Map(items.map((item) => [item.id, item]));
  queries.setQueriesData<InfiniteData<SessionPage>>({ queryKey: ["sessions", "list"] }, (list) =>
    list ? { ...list, pages: list.pages.map((page) => withChanges(page, changed)) } : list,
  );
}

/** The page with newer summaries of the sessions on it. The order stays until the list is loaded again. */
export function withChanges(page: SessionPage, changed: Map<string, SessionItem>): SessionPage {
  if (!page.items.some(({ id }) => changed.has(id))) return page;
  return { ...page, items: page.items.map((item) => changed.get(item.id) ?? item) };
}
