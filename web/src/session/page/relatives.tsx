/** The sessions that started from this one: subagents, forks and continuations. */

import { Link } from "wouter";
import { sessionPage } from "@/api/paths";
import type { SessionItem } from "@/api/types";
import { Icon, type IconName } from "@/design/icon";
import { titleOf } from "@/sessions/session-title";
import "./sidebar.css";

interface RelativesProps {
  subagents: SessionItem[];
  forks: SessionItem[];
}

export function Relatives({ subagents, forks }: RelativesProps) {
  return (
    <>
      <Group title="Subagents" icon="agent" sessions={subagents} />
      <Group title="Forks and continuations" icon="branch" sessions={forks} />
    </>
  );
}

function Group({ title, icon, sessions }: { title: string; icon: IconName; sessions: SessionItem[] }) {
  if (sessions.length === 0) return null;
  return (
    <section className="relatives" aria-label={title}>
      <h2>{title}</h2>
      <ul>
        {sessions.map((session) => (
          <li key={session.id}>
            <Link href={sessionPage(session.id)}>
              <Icon name={icon} size={13} />
              <span>{titleOf(session)}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
