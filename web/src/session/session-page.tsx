/** The page of one session: header, outline, timeline; the address names the message or part to open at. */

import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { getJson } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { Items, OutlineEntry, SessionAnswer } from "@/api/types";
import { Drawer } from "@/design/drawer";
import { Problem } from "@/design/problem";
import { titleOf } from "@/sessions/session-title";
import { useKeys } from "@/shell/keys";
import { useTitle } from "@/shell/title";
import { DisclosureProvider, useDisclosures } from "./disclosure";
import { Outline } from "./outline";
import { Relatives } from "./relatives";
import { SessionContext } from "./session-context";
import { SessionHeader } from "./session-header";
import "./session-page.css";
import { Timeline, type TimelineHandle } from "./timeline";
import { useAnchor } from "./use-anchor";
import { useSessionWindow } from "./use-session-window";

export default function SessionPage({ id }: { id: string }) {
  const answer = useQuery({
    queryKey: ["session", id],
    queryFn: ({ signal }) => getJson<SessionAnswer>(sessionPath(id), {}, signal),
  });
  const outline = useQuery({
    queryKey: ["outline", id],
    queryFn: ({ signal }) => getJson<Items<OutlineEntry>>(`${sessionPath(id)}/outline`, {}, signal),
  });
  const landmarks = useMemo(() => inOrder(outline.data?.items ?? []), [outline.data]);
  useTitle(answer.data && titleOf(answer.data.session));
  if (answer.isError) return <Problem error={answer.error} what="This session" />;
  if (!answer.data) return <main className="session-page" aria-busy="true" />;
  return (
    <DisclosureProvider key={id}>
      <OpenSession answer={answer.data} outline={landmarks} />
    </DisclosureProvider>
  );
}

/** A rewind is noted with the prompt that followed from it, and stands before that. */
function inOrder(entries: OutlineEntry[]): OutlineEntry[] {
  const rank = (entry: OutlineEntry) => (entry.kind === "rewind" ? 0 : 1);
  return entries.toSorted((one, other) => one.position - other.position || rank(one) - rank(other));
}

function OpenSession({ answer, outline }: { answer: SessionAnswer; outline: OutlineEntry[] }) {
  const { session } = answer;
  const disclosures = useDisclosures();
  const { openAround, loadBefore, loadAfter, ...loaded } = useSessionWindow(session.id);
  const timeline = useRef<TimelineHandle>(null);
  const [position, setPosition] = useState(0);
  const [drawer, setDrawer] = useState(false);
  const [allOpen, setAllOpen] = useState(false);

  const jump = useCallback(
    (to: number) => {
      setDrawer(false);
      if (!timeline.current?.scrollTo(to)) openAround(to);
    },
    [openAround],
  );
  const { linked, flashing, problem } = useAnchor(session.id, answer.first_position ?? 0, jump);
  usePromptKeys(outline, position, answer, jump);

  const toggleAll = useCallback(() => {
    disclosures.setAll(!disclosures.allOpen());
  }, [disclosures]);
  useEffect(() => disclosures.subscribe(() => setAllOpen(disclosures.allOpen())), [disclosures]);

  const cwd = session.cwd ?? session.project?.path;
  const context = useMemo(
    () => ({ sessionId: session.id, cwd, linked, flashing }),
    [session.id, cwd, linked, flashing],
  );
  const sidebar = (
    <>
      <Outline entries={outline} position={position} onJump={jump} />
      <Relatives subagents={answer.children} forks={answer.forks} />
    </>
  );
  const bare = outline.length + answer.children.length + answer.forks.length === 0;
  return (
    <SessionContext value={context}>
      <main className="session-page" data-bare={bare || undefined}>
        <SessionHeader
          answer={answer}
          onOutline={() => setDrawer(true)}
          allOpen={allOpen}
          onToggleAll={toggleAll}
        />
        {(problem ?? loaded.error) && <p className="session-problem">{(problem ?? loaded.error)?.message}</p>}
        <nav className="session-outline" aria-label="Prompts">
          {sidebar}
        </nav>
        <Timeline
          loaded={loaded}
          loadBefore={loadBefore}
          loadAfter={loadAfter}
          onPosition={setPosition}
          handle={timeline}
        />
        <Drawer open={drawer} onClose={() => setDrawer(false)} label="Prompts">
          {sidebar}
        </Drawer>
      </main>
    </SessionContext>
  );
}

/** n and p go to the next and previous prompt, Home and End to either end of the session. */
function usePromptKeys(
  outline: OutlineEntry[],
  position: number,
  answer: SessionAnswer,
  jump: (position: number) => void,
): void {
  const handlers = useMemo(() => {
    const go = (to: number | null | undefined) => (event: KeyboardEvent) => {
      if (to == null) return;
      event.preventDefault();
      jump(to);
    };
    return {
      n: go(outline.find((entry) => entry.position > position)?.position),
      p: go(outline.findLast((entry) => entry.position < position)?.position),
      Home: go(answer.first_position),
      End: go(answer.last_position),
    };
  }, [outline, position, answer, jump]);
  useKeys(handlers);
}
