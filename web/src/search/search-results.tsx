/** What a search found, by session, and how to write a query before there is one. */

import { Link } from "wouter";
import { hitPage, sessionPage } from "@/api/paths";
import type { SearchGroup as Group, SearchHit as Hit, Role, SearchField, SnippetPiece } from "@/api/types";
import { Icon, type IconName } from "@/design/icon";
import { formatCount, plural } from "@/format/numbers";
import { formatExact, formatRelative } from "@/format/time";
import { usePersonName } from "@/hub/owner-label";
import { AgentLabel } from "@/sessions/agent-label";
import { titleOf } from "@/sessions/session-title";

/** The hits of one session. */
export function SearchGroup({ group, query, now }: { group: Group; query: string; now: Date }) {
  const { session, hits, names } = group;
  const title = names.find(({ field }) => field === "title");
  const owner = usePersonName(session.user);
  const best = hits[0];
  return (
    <section className="hit-group">
      <h2>
        <Link
          href={best ? hitPage(session.id, query, best.message_id, best.part) : sessionPage(session.id)}
          dir="auto"
        >
          {title ? <Snippet pieces={title.text} /> : titleOf(session)}
        </Link>
        <span className="hit-places" title={session.project ?? undefined}>
          {session.project_name && `${session.project_name} · `}
          <AgentLabel agent={session.agent} />
          {owner && ` · ${owner}`}
        </span>
      </h2>
      <FoundNames names={names.filter(({ field }) => field !== "title")} />
      <ul>
        {hits.map((hit) => (
          <li key={`${hit.message_id}/${hit.part}/${hit.field}`}>
            <SearchHit sessionId={session.id} query={query} hit={hit} now={now} />
          </li>
        ))}
      </ul>
      <MoreInSession group={group} query={query} />
    </section>
  );
}

/** Tags, files and other names of the session in which words were found. */
function FoundNames({ names }: { names: Group["names"] }) {
  return names.map(({ field, text }) => (
    <p key={field} className="hit-name">
      <span className="hit-kind">{field}</span>
      <span className="hit-snippet">
        <Snippet pieces={text} />
      </span>
    </p>
  ));
}

/** Leads to the other hits of a session of which only the best one is shown. */
function MoreInSession({
  group: { session, matches, matches_is_exact },
  query,
}: {
  group: Group;
  query: string;
}) {
  if (matches === null || matches < 2) return null;
  const others = matches_is_exact ? `+${formatCount(matches - 1)}` : `${formatCount(matches)}+`;
  const parameters = new URLSearchParams({ q: query, session: session.id, sort: "newest" });
  return (
    <Link href={`/search?${parameters}`} className="hit-more">
      {others} in this session
    </Link>
  );
}

const FIELDS: Record<Exclude<SearchField, "text">, { label: string; icon: IconName }> = {
  reasoning: { label: "thinking", icon: "think" },
  input: { label: "input", icon: "tool" },
  output: { label: "output", icon: "terminal" },
  file: { label: "file", icon: "document" },
};

const ROLES: Record<Role, { label: string; icon: IconName }> = {
  user: { label: "prompt", icon: "question" },
  assistant: { label: "answer", icon: "document" },
  developer: { label: "injected", icon: "system" },
  system: { label: "system", icon: "system" },
};

/** One hit: who wrote it, when, and the words around it. It links to the part. */
export function SearchHit(props: { sessionId: string; query: string; hit: Hit; now: Date }) {
  const { sessionId, query, hit, now } = props;
  const { label, icon } = hit.field === "text" ? ROLES[hit.role] : FIELDS[hit.field];
  return (
    <Link href={hitPage(sessionId, query, hit.message_id, hit.part)} className="hit" data-item>
      <span className="hit-kind">
        <Icon name={icon} size={14} />
        <span>{hit.tool_name ? `${hit.tool_name} ${label}` : label}</span>
      </span>
      <span className="hit-snippet">
        <Snippet pieces={hit.snippet} />
        {hit.also_in.length > 0 && (
          <span className="hit-also">, {plural(hit.also_in.length, "fork has", "forks have")} it too</span>
        )}
      </span>
      <span className="hit-when" title={hit.created_at ? formatExact(hit.created_at) : undefined}>
        {hit.created_at && formatRelative(hit.created_at, now)}
      </span>
    </Link>
  );
}

function Snippet({ pieces }: { pieces: SnippetPiece[] }) {
  return pieces.map(({ text, marked }, index) =>
    marked ? <mark key={index}>{text}</mark> : <span key={index}>{text}</span>,
  );
}

const HINTS = [
  ["red green", "sessions with both words, in one message or in several"],
  ['"red green"', "the words next to each other"],
  ["gre*", "words that begin with it"],
  ["red OR green -blue", "messages with either word, and without blue"],
  ["ECONNRESET snake_case a.b.c", "code as it is written"],
  ["title:red project:shop tag:later", "words of a session's title, project or tags"],
  ["file:shop.py branch:main", "sessions that touched a file, or worked on a branch"],
  ["role:user tool:Bash is:failed", "who wrote it, which tool was called, and calls that failed"],
  ["after:2026-11-20 before:7d", "when it was written"],
];

/** How to write a query, shown before the first one. */
export function SearchHints() {
  return (
    <dl className="hints">
      {HINTS.map(([query, finds]) => (
        <div key={query}>
          <dt>{query}</dt>
          <dd>{finds}</dd>
        </div>
      ))}
    </dl>
  );
}
