/** The sessions of the list, beside the open one: in the order and with the filters that the list had last. */

import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { Link, useLocation } from "wouter";
import { sessionPage } from "@/api/paths";
import type { SessionItem } from "@/api/types";
import { MoreButton } from "@/design/more-button";
import { describeFailure } from "@/design/problem";
import { formatRelative } from "@/format/time";
import { AgentLabel } from "@/sessions/agent-label";
import { titleOf } from "@/sessions/session-title";
import { isActive, StateBadge } from "@/sessions/state-badge";
import { lastFilters, sessionsQuery } from "@/sessions/use-sessions";
import { useKeys } from "@/shell/keys";

export function OtherSessions({ sessionId }: { sessionId: string }) {
  const sessions = useInfiniteQuery(sessionsQuery(lastFilters()));
  const items = sessions.data?.pages.flatMap((page) => page.items) ?? [];
  const current = useRef<HTMLLIElement>(null);
  const known = items.some(({ id }) => id === sessionId);
  useEffect(() => {
    if (known) current.current?.scrollIntoView({ block: "nearest" });
  }, [known]);
  const now = new Date();
  return (
    <div className="sidebar-scroll" aria-busy={sessions.isPending}>
      {sessions.isError && <p className="session-note">{describeFailure(sessions.error)}</p>}
      <ul className="other-sessions" aria-label="Sessions">
        {items.map((session) => (
          <li key={session.id} ref={session.id === sessionId ? current : undefined}>
            <OtherSession session={session} isCurrent={session.id === sessionId} now={now} />
          </li>
        ))}
      </ul>
      {sessions.hasNextPage && <MoreButton pages={sessions} />}
    </div>
  );
}

interface OtherSessionProps {
  session: SessionItem;
  isCurrent: boolean;
  now: Date;
}

function OtherSession({ session, isCurrent, now }: OtherSessionProps) {
  return (
    <Link
      href={sessionPage(session.id)}
      className="other-session"
      aria-current={isCurrent ? "page" : undefined}
    >
      <span className="other-title" dir="auto">
        {titleOf(session)}
      </span>
      <span className="other-facts">
        <AgentLabel agent={session.agent} />
        {isActive(session.state, now) ? (
          <StateBadge session={session} now={now} />
        ) : (
          session.updated_at && <span>{formatRelative(session.updated_at, now)}</span>
        )}
      </span>
    </Link>
  );
}

/** `[` and `]` open the session before and after the open one in the list; from one that is not in it, the first. */
export function useNeighbourKeys(sessionId: string): void {
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const handlers = useMemo(() => {
    const go = (step: 1 | -1) => async () => {
      const query = sessionsQuery(lastFilters());
      const known = queries.getQueryData(query.queryKey) ?? (await queries.fetchInfiniteQuery(query));
      const next = neighbour(
        known.pages.flatMap(({ items }) => items),
        sessionId,
        step,
      );
      if (next) {
        navigate(sessionPage(next.id));
        return;
      }
      const last = known.pages.at(-1);
      if (step === -1 || !last?.next_cursor) return;
      const more = await queries.fetchInfiniteQuery({
        ...query,
        pages: known.pages.length + 1,
        staleTime: 0,
      });
      const following = neighbour(
        more.pages.flatMap(({ items }) => items),
        sessionId,
        step,
      );
      if (following) navigate(sessionPage(following.id));
    };
    return { "[": go(-1), "]": go(1) };
  }, [queries, navigate, sessionId]);
  useKeys(handlers);
}

export function neighbour(sessions: SessionItem[], id: string, step: 1 | -1): SessionItem | undefined {
  const index = sessions.findIndex((session) => session.id === id);
  return index < 0 ? sessions[0] : sessions[index + step];
}
