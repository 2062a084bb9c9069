/** The hits of one session. */

import { Link } from "wouter";
import { sessionPage } from "@/api/paths";
import type { SearchGroup as Group } from "@/api/types";
import { AgentLabel } from "@/sessions/agent-label";
import { titleOf } from "@/sessions/session-title";
import { SearchHit } from "./search-hit";

export function SearchGroup({ group: { session, hits }, now }: { group: Group; now: Date }) {
  const title = titleOf(session);
  const folder = session.project?.split(/[/\\]/).at(-1);
  return (
    <section className="hit-group">
      <h2>
        <Link href={sessionPage(session.id)} dir="auto">
          {title}
        </Link>
        <span className="hit-places" title={session.project ?? undefined}>
          {folder && `${folder} · `}
          <AgentLabel agent={session.agent} />
        </span>
      </h2>
      <ul>
        {hits.map((hit) => (
          <li key={`${hit.message_id}/${hit.part}/${hit.field}`}>
            <SearchHit sessionId={session.id} hit={hit} now={now} />
          </li>
        ))}
      </ul>
    </section>
  );
}
