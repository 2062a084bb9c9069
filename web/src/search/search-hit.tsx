/** One place where it was found: who said it, when, and the words around it. It opens on the very part. */

import { Link } from "wouter";
import { REASONING } from "@/api/anchor";
import { sessionPage } from "@/api/paths";
import type { SearchHit as Hit, Role, SearchField, SnippetPiece } from "@/api/types";
import { Icon, type IconName } from "@/design/icon";
import { formatExact, formatRelative } from "@/format/time";
import { isLeft } from "@/session/fates";

const FIELDS: Record<Exclude<SearchField, "text">, { label: string; icon: IconName }> = {
  reasoning: { label: "thinking", icon: "think" },
  input: { label: "input", icon: "tool" },
  output: { label: "output", icon: "terminal" },
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
    <Link href={sessionPage(sessionId, hit.message_id, partOf(hit))} className="hit" data-item>
      <span className="hit-kind">
        <Icon name={icon} size={14} />
        {hit.tool_name ? `${hit.tool_name} ${label}` : label}
      </span>
      <span className={`hit-snippet${isLeft(hit.fate) ? " hit-left" : ""}`}>
        <Snippet pieces={hit.snippet} />
      </span>
      <span className="hit-when" title={hit.created_at ? formatExact(hit.created_at) : undefined}>
        {hit.created_at && formatRelative(hit.created_at, now)}
      </span>
    </Link>
  );
}

function partOf(hit: Hit): string | null {
  return hit.field === "reasoning" ? REASONING : hit.tool_call_id;
}

function Snippet({ pieces }: { pieces: SnippetPiece[] }) {
  return pieces.map(({ text, marked }, index) =>
    marked ? <mark key={index}>{text}</mark> : <span key={index}>{text}</span>,
  );
}
