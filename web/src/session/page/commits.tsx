/** The commits that a session made or pushed, and the pull requests that it opened. Nothing where there are none. */

import { useQuery } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { commitsPath } from "@/api/paths";
import type { MadeCommit, SessionWork } from "@/api/types";
import { Icon } from "@/design/icon";
import "./sidebar.css";

const DEEDS: Partial<Record<MadeCommit["deed"], string>> = {
  amended: "amended",
  picked: "cherry-picked",
  reverted: "reverted",
  merged: "merged",
  pushed: "pushed",
};

interface CommitsProps {
  sessionId: string;
  /** Grows with what is written to the session. */
  messages: number;
  onJump: (position: number) => void;
}

export function Commits({ sessionId, messages, onJump }: CommitsProps) {
  const { data } = useQuery({
    queryKey: ["commits", sessionId, messages],
    queryFn: ({ signal }) => getJson<SessionWork>(commitsPath(sessionId), {}, signal),
    placeholderData: (before) => before,
  });
  const { commits = [], pull_requests = [] } = data ?? {};
  if (commits.length + pull_requests.length === 0) return null;
  return (
    <section className="relatives" aria-label="Commits">
      <h2>Commits</h2>
      <ul>
        {pull_requests.map((request) => (
          <li key={request.url}>
            <a href={request.url} target="_blank" rel="noreferrer noopener" title={request.url}>
              <Icon name="branch" size={13} />
              <span>
                #{request.number} {request.repository.split("/").slice(1).join("/")}
              </span>
            </a>
          </li>
        ))}
        {commits.map((commit) => (
          <li key={commit.hash}>
            <button type="button" title={titleOf(commit)} onClick={() => onJump(commit.position)}>
              <code>{commit.hash.slice(0, 7)}</code>
              <span>{commit.subject ?? DEEDS[commit.deed] ?? commit.branch}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function titleOf({ hash, subject, branch, deed, turn }: MadeCommit): string {
  const where = [DEEDS[deed] ?? "committed", branch && `on ${branch}`, turn && `in turn ${turn}`];
  return [hash, subject, where.filter(Boolean).join(" ")].filter(Boolean).join("\n");
}
