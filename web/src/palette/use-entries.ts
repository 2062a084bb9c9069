/** What the palette offers: pages and actions, sessions by name, and places where the words were found. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { hitPage, SEARCH, SESSIONS, sessionPage } from "@/api/paths";
import type { SearchResponse, SessionItem, SessionPage, SnippetPiece } from "@/api/types";
import type { IconName } from "@/design/icon";
import { plural } from "@/format/numbers";
import { formatRelative } from "@/format/time";
import { titleOf } from "@/sessions/session-title";
import { useAgents } from "@/sessions/use-agents";
import { openKeyHelp } from "@/shell/key-help";
import { type Page, usePages } from "@/shell/pages";
import { toggleTheme } from "@/shell/theme";

export interface Entry {
  id: string;
  group: string;
  icon: IconName;
  label: string;
  /** Where it is, in small letters. */
  detail?: string;
  snippet?: SnippetPiece[];
  /** An address to go to, or something to do. */
  to: string | (() => void);
}

const SHOWN_SESSIONS = 6;
const SHOWN_HITS = 8;

interface Entries {
  entries: Entry[];
  /** They are for what is typed by now. */
  settled: boolean;
}

/** Entries for the typed text. `query` follows it after a pause and is sent to the server. Pages and actions come first. */
export function useEntries(text: string, query: string): Entries {
  const look = useAgents();
  const pages = usePages();
  const sessions = useQuery({
    queryKey: ["palette", "sessions", query],
    queryFn: ({ signal }) =>
      getJson<SessionPage>(
        SESSIONS,
        { title: query, limit: SHOWN_SESSIONS, subagents: query !== "" },
        signal,
      ),
    placeholderData: keepPreviousData,
  });
  const found = useQuery({
    queryKey: ["palette", "search", query],
    queryFn: ({ signal }) => getJson<SearchResponse>(SEARCH, { q: query, limit: SHOWN_HITS }, signal),
    placeholderData: keepPreviousData,
    enabled: query !== "",
  });
  const tagged = useQuery({
    queryKey: ["palette", "tag", query],
    queryFn: ({ signal }) => getJson<SessionPage>(SESSIONS, { tag: query, limit: 1 }, signal),
    enabled: query !== "",
  });
  const named = text ? commands(pages).filter(({ label }) => isNamed(label, text)) : [];
  const entries = [
    ...named,
    ...(tagged.data?.total ? [tagEntry(query, tagged.data.total)] : []),
    ...(sessions.data?.items.map((session) => sessionEntry(session, look(session.agent).name, query)) ?? []),
    ...(query ? hitEntries(found.data, query) : []),
    ...(query ? [everythingEntry(query)] : []),
    ...(text ? [] : commands(pages)),
  ];
  const settled = text === query && ![sessions, found, tagged].some(({ isFetching }) => isFetching);
  return { entries, settled };
}

/** Whether one of the words in a text begins so. */
function isNamed(label: string, text: string): boolean {
  return ` ${label}`.toLowerCase().includes(` ${text.toLowerCase()}`);
}

function sessionEntry(session: SessionItem, agent: string, query: string): Entry {
  const moment = session.updated_at ?? session.created_at;
  return {
    id: `session ${session.id}`,
    group: query ? "Sessions" : "Recent sessions",
    icon: "list",
    label: titleOf(session),
    detail: [session.project?.name, agent, moment && formatRelative(moment, new Date())]
      .filter(Boolean)
      .join(" · "),
    to: sessionPage(session.id),
  };
}

function tagEntry(tag: string, count: number): Entry {
  return {
    id: "tag",
    group: "Sessions",
    icon: "tag",
    label: `Tagged “${tag}”`,
    detail: plural(count, "session"),
    to: `/?tag=${encodeURIComponent(tag)}`,
  };
}

function hitEntries(answer: SearchResponse | undefined, query: string): Entry[] {
  return (answer?.items ?? []).flatMap(({ session, hits }) =>
    hits.map((hit) => ({
      id: `hit ${hit.message_id} ${hit.part} ${hit.field} ${session.id}`,
      group: "Found in sessions",
      icon: "search",
      label: hit.snippet.map(({ text }) => text).join(""),
      snippet: hit.snippet,
      detail: titleOf(session),
      to: hitPage(session.id, query, hit.message_id, hit.part),
    })),
  );
}

function everythingEntry(query: string): Entry {
  return {
    id: "everything",
    group: "Found in sessions",
    icon: "arrow",
    label: `Search everything for “${query}”`,
    to: `/search?q=${encodeURIComponent(query)}`,
  };
}

function commands(pages: Page[]): Entry[] {
  return [
    ...pages.map(({ href, label, icon }) => ({ id: href, group: "Go to", icon, label, to: href })),
    { id: "theme", group: "Actions", icon: "moon", label: "Switch between light and dark", to: toggleTheme },
    { id: "keys", group: "Actions", icon: "help", label: "Show keyboard shortcuts", to: openKeyHelp },
  ];
}
