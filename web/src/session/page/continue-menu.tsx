/** Where a session goes on: in its own agent or in another one, as a command to copy; by a button if the server may. */

import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { getJson, sendJson } from "@/api/client";
import { HANDOFFS, handoffPath, sessionPage } from "@/api/paths";
import type { HandoffResponse, HandoffTargetsResponse, SessionItem } from "@/api/types";
import { CopyButton } from "@/design/copy-button";
import { Menu, MenuSection } from "@/design/menu";
import { ResumeElsewhere } from "@/hub/resume-elsewhere";
import { useIsHub } from "@/hub/use-hub";
import { shellLine } from "@/shown/shell";

/** The command with which the session's own agent goes on with it. */
export function ResumeMenu({ session }: { session: SessionItem }) {
  const isHub = useIsHub();
  if (!session.resume) return null;
  const line = shellLine(session.resume.command, session.resume.folder);
  if (isHub) {
    return (
      <Menu label="Resume" icon="terminal" title="Continue this session in its agent, on a machine">
        <ResumeElsewhere session={session} resume={session.resume} />
      </Menu>
    );
  }
  return (
    <Menu label="Resume" icon="terminal" title="Continue this session in its agent">
      <MenuSection title="In a terminal">
        <code className="menu-code">{line}</code>
        {session.resume.problem && <p className="menu-problem">{session.resume.problem}</p>}
        <CopyButton className="menu-item" label="Copy the command" text={() => line} />
      </MenuSection>
    </Menu>
  );
}

interface ContinueMenuProps {
  session: SessionItem;
  /** Whether the server starts agents, and so hands sessions over. */
  prompts: boolean;
}

/** The other agents that are installed. A subagent cannot be handed over without its parent. */
export function ContinueMenu({ session, prompts }: ContinueMenuProps) {
  const { data } = useQuery({
    queryKey: ["handoffs"],
    queryFn: ({ signal }) => getJson<HandoffTargetsResponse>(HANDOFFS, {}, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const others = (data?.items ?? []).filter((each) => each.agent !== session.agent && each.is_installed);
  const isSubagent = session.relationships?.some((each) => each.kind === "subagent");
  if (isSubagent || others.length === 0) return null;
  return (
    <Menu label="Continue in…" icon="move" title="Continue this session in another agent">
      {others.map(({ agent, display_name }) => (
        <MenuSection key={agent} title={display_name}>
          <CopyButton
            className="menu-item"
            label="Copy the command"
            text={() => shellLine(["turnlog", "resume", session.id, "--in", agent])}
          />
          {prompts && <HandOverButton sessionId={session.id} agent={agent} />}
        </MenuSection>
      ))}
    </Menu>
  );
}

/** Writes the session as one of another agent, says what was lost, and leads to it. */
function HandOverButton({ sessionId, agent }: { sessionId: string; agent: string }) {
  const [, navigate] = useLocation();
  const [written, setWritten] = useState<HandoffResponse | null>(null);
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => sendJson<HandoffResponse>("POST", handoffPath(sessionId), { agent }),
    onSuccess: setWritten,
  });
  if (written)
    return (
      <>
        <ul className="menu-report">
          {[...written.losses, ...written.notes].map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
        <button type="button" className="menu-item" onClick={() => navigate(sessionPage(written.session_id))}>
          Open the new session
        </button>
      </>
    );
  return (
    <>
      <button
        type="button"
        className="menu-item"
        onClick={() => mutate()}
        disabled={isPending}
        aria-busy={isPending}
      >
        Hand it over now
      </button>
      {error && <span role="alert"> Not handed over: {error.message}</span>}
    </>
  );
}
