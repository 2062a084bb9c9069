/** What the server tells of changes, as they happen. Lists show them at once; everything else is asked for again. */

import { type InfiniteData, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { EVENTS } from "@/api/paths";
import type { SessionItem, SessionPage, SessionsChange } from "@/api/types";

/** Milliseconds for which changes are gathered before anything is asked for again: an import changes all the time. */
const PAUSE = 400;

/** What a change of the store cannot change. */
const UNTOUCHED: ReadonlySet<unknown> = new Set(["status", "text"]);

/** For the frame around all pages, once. The browser connects again by itself and says what it saw last. */
export function useLive(): void {
  const queries = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const askAgain = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        queries.invalidateQueries({ predicate: ({ queryKey }) => !UNTOUCHED.has(queryKey[0]) });
      }, PAUSE);
    };
    const source = new EventSource(EVENTS);
    source.addEventListener("sessions", (event: MessageEvent<string>) => {
      const change = JSON.parse(event.data) as SessionsChange;
      showAtOnce(queries, change.items);
      askAgain();
    });
    source.addEventListener("resync", askAgain);
    return () => {
      clearTimeout(timer);
      source.close();
    };
  }, [queries]);
}

function showAtOnce(queries: QueryClient, items: SessionItem[]): void {
  const changed = new Map(items.map((item) => [item.id, item]));
  queries.setQueriesData<InfiniteData<SessionPage>>({ queryKey: ["sessions", "list"] }, (list) =>
    list ? { ...list, pages: list.pages.map((page) => withChanges(page, changed)) } : list,
  );
}

/** The page with newer summaries of the sessions on it. The order stays until the list is asked for again. */
export function withChanges(page: SessionPage, changed: Map<string, SessionItem>): SessionPage {
  if (!page.items.some(({ id }) => changed.has(id))) return page;
  return { ...page, items: page.items.map((item) => changed.get(item.id) ?? item) };
}
