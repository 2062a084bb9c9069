/** The session itself: a list of which only what is in sight is on the page, and only what is near is loaded. */

import {
  Fragment,
  type ReactNode,
  type RefObject,
  useEffect,
  useImperativeHandle,
  useMemo,
  useRef,
  useSyncExternalStore,
} from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import type { SessionState, StateName } from "@/api/types";
import { Icon } from "@/design/icon";
import { Loading } from "@/design/loading";
import { ScrolledRows } from "@/design/scrolled-rows";
import { plural } from "@/format/numbers";
import { useDisclosures } from "@/session/disclosure";
import { BRANCH_PREFIX, entriesOf } from "@/session/entries";
import type { LoadedWindow } from "@/session/loaded-window";
import type { Place } from "@/session/place";
import { useSessionContext } from "@/session/session-context";
import { stateAt } from "@/sessions/state-badge";
import { useClock } from "@/sessions/use-clock";
import { useEntryKeys } from "./entry-keys";
import { EntryView } from "./entry-view";
import { useTimelineScroll } from "./scroll";
import { useTail } from "./tail";
import "./timeline.css";
import "@/session/message/message.css";
import "@/session/message/folds.css";

export interface TimelineHandle {
  /** Scrolls there if it is loaded; false when it must be loaded first. */
  scrollTo: (place: Place) => boolean;
}

interface TimelineProps {
  loaded: LoadedWindow;
  /** What the session does. */
  state: SessionState | undefined;
  /** What follows is there, and not shown yet. */
  replayed: boolean;
  loadBefore: () => void;
  loadAfter: () => void;
  onPosition: (position: number) => void;
  handle: RefObject<TimelineHandle | null>;
  scroller: RefObject<HTMLDivElement | null>;
  /** What lies above the list. */
  children: ReactNode;
}

export function Timeline(props: TimelineProps) {
  const { loaded, state, replayed, loadBefore, loadAfter, onPosition, handle, scroller, children } = props;
  const { window: session, generation } = loaded;
  const entries = useEntries(loaded);
  const list = useRef<VirtualizerHandle>(null);
  const { look, scrollTo, leaveTarget } = useTimelineScroll({
    scroller,
    list,
    entries,
    loaded,
    loadBefore,
    loadAfter,
    onPosition,
  });
  const shift = useShift(loaded);
  const tail = useTail({ list, scroller, loaded, onFollow: leaveTarget });
  useImperativeHandle(handle, () => ({ scrollTo }));
  useEntryKeys(scroller, list, entries.length);
  const ended = session !== null && !session.hasAfter && !replayed;

  const onScroll = () => {
    look();
    tail.look();
  };
  return (
    <div className="timeline-frame">
      {children}
      <p className="gutter-heading" title={GUTTER}>
        <span>context → output · cost</span>
      </p>
      <section className="timeline" ref={scroller} tabIndex={0} aria-label="Session" aria-busy={!session}>
        <Virtualizer
          key={generation}
          ref={list}
          scrollRef={scroller}
          as={ScrolledRows}
          data={entries}
          shift={shift}
          bufferSize={600}
          onScroll={onScroll}
        >
          {(entry, index) => (
            <Fragment key={entry.key}>
              <EntryView entry={entry} index={index} />
              {/* In the list, whose entries are shown once they are measured: below it, it would be pushed away. */}
              {ended && index === entries.length - 1 && <End state={state} />}
            </Fragment>
          )}
        </Virtualizer>
        <Loading busy={!session && !loaded.error} />
        {replayed && <div className="replay-room" />}
      </section>
      {tail.unseen > 0 && !replayed && (
        <button type="button" className="button new-below" onClick={tail.goToEnd}>
          <Icon name="down" size={14} /> {plural(tail.unseen, "new message")} below
        </button>
      )}
    </div>
  );
}

const GUTTER = "Of each step: tokens of its context, tokens of its output, and its cost";

/** An end only where nothing more is to be expected. */
function End({ state }: { state: SessionState | undefined }) {
  useClock();
  const name = stateAt(state, new Date());
  return <p className="timeline-end">{(name && GOING_ON[name]) ?? "End of session"}</p>;
}

const GOING_ON: Partial<Record<StateName, string>> = { running: "Still running", waiting: "Waiting for you" };

/** Whether rows were added or removed above in this render; true for that one render only, not when a fold opens later. */
function useShift({ window: session, grewBefore }: LoadedWindow): boolean {
  const drawn = useRef(session);
  useEffect(() => {
    drawn.current = session;
  }, [session]);
  return grewBefore && drawn.current !== session;
}

/** Computed again when something was loaded, and when a branch is opened or folded. */
function useEntries({ window: session }: LoadedWindow) {
  const disclosures = useDisclosures();
  const { hidden } = useSessionContext();
  const branches = useSyncExternalStore(disclosures.subscribe, () => disclosures.signature(BRANCH_PREFIX));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the signature says when a branch has changed
  return useMemo(
    () => (session ? entriesOf(session, (id) => disclosures.isOpen(id, false), hidden) : []),
    [session, disclosures, branches, hidden],
  );
}
