/** One hit: who wrote it, when, and the words around it. It links to the part. */

import { Link } from "wouter";
import { sessionPage } from "@/api/paths";
import type { SearchHit as Hit, Role, SearchField, SnippetPiece } from "@/api/types";
import { Icon, type IconName } from "@/design/icon";
import { plural } from "@/format/numbers";
import { formatExact, formatRelative } from "@/format/time";

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

export function SearchHit({ sessionId, hit, now }: { sessionId: string; hit: Hit; now: Date }) {
  const { label, icon } = hit.field === "text" ? ROLES[hit.role] : FIELDS[hit.field];
  return (
    <Link href={sessionPage(sessionId, hit.message_id, hit.part)} className="hit" data-item>
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
