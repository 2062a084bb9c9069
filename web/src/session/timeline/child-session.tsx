/** The session that a call started, in place: the same entries as on its own page, loaded page by page. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "wouter";
import { getJson } from "@/api/client";
import { sessionPage, sessionPath } from "@/api/paths";
import type { WindowPage } from "@/api/types";
import { Icon } from "@/design/icon";
import { entriesOf } from "@/session/entries";
import { SessionContext, useSessionContext } from "@/session/session-context";
import { extendAfter, openWindow, type SessionWindow } from "@/session/window";
import { EntryContent } from "./entry-view";
import "./child-session.css";

const PAGE = 30;

export default function ChildSession({ id }: { id: string }) {
  const outer = useSessionContext();
  const pages = useInfiniteQuery({
    queryKey: ["child", id],
    initialPageParam: null as number | null,
    queryFn: ({ pageParam, signal }) =>
      getJson<WindowPage>(`${sessionPath(id)}/window`, { after: pageParam, limit: PAGE }, signal),
    getNextPageParam: (page) => (page.has_after ? page.rows.at(-1)?.position : undefined),
  });
  const entries = useMemo(
    () => entriesOf(joined(pages.data?.pages ?? []), () => true, outer.hidden),
    [pages.data, outer.hidden],
  );
  const context = useMemo(
    () => ({ ...outer, sessionId: id, running: null, linked: null, flashing: false, pins: null }),
    [outer, id],
  );
  return (
    <SessionContext value={context}>
      <section className="child-session" aria-label="Session of the subagent" aria-busy={pages.isPending}>
        <p className="child-title">
          <Icon name="agent" size={13} /> What the subagent did
          <Link href={sessionPage(id)} className="link">
            Open its page
          </Link>
        </p>
        {pages.isError && <p className="tool-note">Could not be loaded: {pages.error.message}</p>}
        {entries.map((entry) => (
          <EntryContent key={entry.key} entry={entry} />
        ))}
        {pages.hasNextPage && (
          <button
            type="button"
            className="link"
            disabled={pages.isFetchingNextPage}
            onClick={() => pages.fetchNextPage()}
          >
            {pages.isFetchingNextPage ? "Loading…" : "Show more"}
          </button>
        )}
      </section>
    </SessionContext>
  );
}

const NOTHING: SessionWindow = { messages: [], events: [], hasBefore: false, hasAfter: false };

function joined(pages: WindowPage[]): SessionWindow {
  const [first, ...others] = pages;
  return first ? others.reduce(extendAfter, openWindow(first)) : NOTHING;
}
