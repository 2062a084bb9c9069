/** The page of one session: header, outline, timeline; the address names the message or part to open at. */

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useCallback, useMemo, useRef, useState } from "react";
import { parseAnchor } from "@/api/anchor";
import { getJson } from "@/api/client";
import { type StreamReader, useEventStream } from "@/api/event-stream";
import { sessionPath } from "@/api/paths";
import type {
  Items,
  OutlineEntry,
  SearchHit,
  SessionItem,
  SessionResponse,
  SessionUpdate,
} from "@/api/types";
import { Drawer } from "@/design/drawer";
import { describeFailure, isMissing, Problem } from "@/design/problem";
import { useIsHub } from "@/hub/use-hub";
import { DisclosureProvider } from "@/session/disclosure";
import { Find, type FirstFind } from "@/session/find/find";
import { wordsOf } from "@/session/find/find-hits";
import { type LoadedWindow, useLoadedWindow } from "@/session/loaded-window";
import { type Place, placeAt } from "@/session/place";
import { useReplay } from "@/session/replay/replay";
import { ReplayBar } from "@/session/replay/replay-bar";
import { SessionContext } from "@/session/session-context";
import { Timeline, type TimelineHandle } from "@/session/timeline/timeline";
import { titleOf } from "@/sessions/session-title";
import { useKeys } from "@/shell/keys";
import { useStatus } from "@/shell/status-line";
import { useTitle } from "@/shell/title";
import { Composer } from "./composer";
import { useJumpKeys } from "./jump-keys";
import { useAnchor, useGoTo, useJumpDuringReplay } from "./navigation";
import { useNeighbourKeys } from "./other-sessions";
import { usePins } from "./pins";
import { useSessionState } from "./prompt";
import { SessionHeader } from "./session-header";
import { applyUpdate, reloadSession, renewSession, useSession } from "./session-query";
import { SessionSidebar } from "./session-sidebar";
import { useHidden, useKeepPlace } from "./use-hidden";
import "./session-page.css";

// Loaded when the first call that started a session is opened.
const LazyChildSession = lazy(() => import("@/session/timeline/child-session"));

function ChildSession({ id }: { id: string }) {
  return (
    <Suspense fallback={null}>
      <LazyChildSession id={id} />
    </Suspense>
  );
}

export default function SessionPage({ id }: { id: string }) {
  const answer = useSession(id);
  const outline = useQuery({
    queryKey: ["outline", id],
    queryFn: ({ signal }) => getJson<Items<OutlineEntry>>(`${sessionPath(id)}/outline`, {}, signal),
  });
  const landmarks = useMemo(() => outline.data && inOrder(outline.data.items), [outline.data]);
  const isHub = useIsHub();
  useTitle(answer.data && titleOf(answer.data.session));
  if (answer.isError && (isMissing(answer.error) || !answer.data))
    return (
      <Problem error={answer.error} what="This session" whole>
        {isHub && <p>A session that was forgotten, or is not shown to you, is answered like this, too.</p>}
      </Problem>
    );
  return (
    <DisclosureProvider key={id}>
      <OpenSession id={id} answer={answer.data} outline={landmarks} />
    </DisclosureProvider>
  );
}

/** A rewind has the position of the prompt that followed from it, and comes before that. */
function inOrder(entries: OutlineEntry[]): OutlineEntry[] {
  const rank = (entry: OutlineEntry) => (entry.kind === "rewind" ? 0 : 1);
  return entries.toSorted((one, other) => one.position - other.position || rank(one) - rank(other));
}

interface OpenSessionProps {
  id: string;
  /** Undefined until it is loaded: the messages are requested at the same time. */
  answer: SessionResponse | undefined;
  /** Likewise. */
  outline: OutlineEntry[] | undefined;
}

const NO_LANDMARKS: OutlineEntry[] = [];
const NO_SESSIONS: SessionItem[] = [];
/** Until it is loaded: nothing can be pinned in it. */
const UNKNOWN_SESSION: SessionItem = { id: "", agent: "", external_id: "" };

function OpenSession({ id, answer, outline }: OpenSessionProps) {
  const landmarks = outline ?? NO_LANDMARKS;
  const { hidden, hide, reveal } = useHidden();
  const { loaded, open, loadBefore, loadAfter, renew, apply } = useLoadedWindow(id);
  const timeline = useRef<TimelineHandle>(null);
  const [position, setPosition] = useState(0);
  // Keys may follow each other faster than the page is drawn: they read the position from here.
  const newest = useRef(0);
  const moveTo = useCallback((to: number) => {
    newest.current = to;
    setPosition(to);
  }, []);
  const scroller = useRef<HTMLDivElement>(null);
  const first = useFirstFind();
  const [finding, setFinding] = useState(first !== null);
  const [drawer, setDrawer] = useState(false);

  const jump = useCallback(
    (place: Place) => {
      setDrawer(false);
      // Set at once, so that a second key press goes on from here before the list has scrolled.
      if (place.position !== null) moveTo(place.position);
      // What is looked for is shown, whatever was left out.
      if (place.part !== null || place.call) reveal();
      if (!timeline.current?.scrollTo(place)) open(place);
    },
    [open, moveTo, reveal],
  );
  useKeepPlace(hidden, newest, jump);
  const { linked, flashing, problem, link } = useAnchor(id, jump);
  const showHit = useCallback(
    (hit: SearchHit) => {
      const { message_id, position, part } = hit;
      const words = wordsOf([hit]);
      link({ messageId: message_id, part, words });
      jump({ position, part, words });
    },
    [link, jump],
  );
  const live = useGrowth(id, loaded.window, { onChange: apply, onResync: renew });

  const cwd = answer?.session.cwd ?? answer?.session.project?.path;
  const [replay, shown] = useReplay({ id, loaded, loadAfter, open });
  const ends = { first: answer?.first_position ?? 0, last: answer?.last_position ?? 0 };
  const travel = useJumpDuringReplay({ replay, loaded, shown, ends, jump, open });
  const travelTo = useCallback((to: number) => travel(placeAt(to)), [travel]);
  // A replay is where it has come to, however little of that fills the screen.
  const { position: replayed } = replay;
  const positionNow = useCallback(() => replayed ?? newest.current, [replayed]);
  useJumpKeys({ sessionId: id, outline: landmarks, positionNow, jump: travel, finding });
  const replayHere = useCallback(() => replay.start(position), [replay.start, position]);
  useKeys(useMemo(() => ({ R: replayHere }), [replayHere]));
  const goTo = useGoTo({ sessionId: id, loaded: loaded.window, outline: landmarks, jump: travel });
  const state = useSessionState(answer?.session);
  const running = state?.state === "running" ? (state.doing?.tool_call_id ?? null) : null;
  const pins = usePins(answer?.session ?? UNKNOWN_SESSION);
  const { children: subagents = NO_SESSIONS, forks = NO_SESSIONS } = answer ?? {};
  const stored = useMemo(() => new Set(subagents.map((subagent) => subagent.id)), [subagents]);
  const isKnown = answer !== undefined;
  const level = answer?.session.upload_level ?? null;
  const knowsSubagents = answer
    ? (answer.session.relationships ?? []).every(({ kind }) => kind === "subagent")
    : null;
  const context = useMemo(
    () => ({
      sessionId: id,
      level,
      cwd,
      running,
      linked,
      flashing,
      goTo,
      ChildSession,
      pins: isKnown ? pins : null,
      hidden,
      subagents: stored,
      knowsSubagents,
    }),
    [id, level, cwd, running, linked, flashing, goTo, isKnown, pins, hidden, stored, knowsSubagents],
  );
  const prompts = useStatus()?.prompts ?? false;
  const failure = problem ?? loaded.error ?? replay.error;
  useNeighbourKeys(id);
  const sidebar = (
    <SessionSidebar
      sessionId={id}
      outline={outline}
      position={position}
      messages={answer?.session.counts?.messages ?? 0}
      subagents={subagents}
      forks={forks}
      onJump={travelTo}
    />
  );
  return (
    <SessionContext value={context}>
      <main className="session-page">
        <SessionHeader
          answer={answer}
          live={live}
          prompts={prompts}
          hidden={hidden}
          onHide={hide}
          onReplay={replayHere}
          onFind={() => setFinding(true)}
          onOutline={() => setDrawer(true)}
        />
        {failure && <p className="session-problem">{describeFailure(failure)}</p>}
        <nav className="session-outline" aria-label="Prompts">
          {sidebar}
        </nav>
        <Timeline
          loaded={shown}
          state={state}
          replayed={replay.position !== null}
          loadBefore={loadBefore}
          loadAfter={loadAfter}
          onPosition={moveTo}
          handle={timeline}
          scroller={scroller}
        >
          <Find
            sessionId={id}
            open={finding}
            onOpen={setFinding}
            position={position}
            root={scroller}
            onHit={showHit}
            first={first}
          />
          {replay.position !== null && <ReplayBar replay={replay} {...ends} onSeek={travelTo} />}
        </Timeline>
        {prompts && <Composer sessionId={id} />}
        <Drawer open={drawer} onClose={() => setDrawer(false)} label="Prompts">
          {sidebar}
        </Drawer>
      </main>
    </SessionContext>
  );
}

/** What the address asks to find: `?find=query#message/part`. Read once; later the field says what is wanted. */
function useFirstFind(): FirstFind | null {
  return useState(() => {
    const query = new URLSearchParams(location.search).get("find");
    const anchor = parseAnchor(location.hash);
    return query ? { query, messageId: anchor?.messageId ?? null, part: anchor?.part ?? null } : null;
  })[0];
}

/** Applies live changes: new messages are added at the end, changed ones replace the old. */
function useGrowth(id: string, window: LoadedWindow["window"], reader: StreamReader<SessionUpdate>): boolean {
  const queries = useQueryClient();
  const onChange = (change: SessionUpdate) => {
    reader.onChange(change);
    applyUpdate(queries, id, change);
    // The outline names prompts, compactions and rewinds, and what became of them.
    if (change.rows.length + change.events.length > 0)
      queries.invalidateQueries({ queryKey: ["outline", id] });
    for (const child of change.children) queries.invalidateQueries({ queryKey: ["child", child.id] });
  };
  // The facts and the outline, too, may be older than the first change of the stream.
  const onResync = (sequence: number) => {
    reader.onResync(sequence);
    if (renewSession(queries, id, sequence)) queries.invalidateQueries({ queryKey: ["outline", id] });
  };
  const onGone = () => reloadSession(queries, id);
  return useEventStream<SessionUpdate>(`${sessionPath(id)}/events`, "session", window !== null, {
    onChange,
    onResync,
    onGone,
  });
}
