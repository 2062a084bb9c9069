/** The session itself: a list of which only what is in sight is on the page, and only what is near is loaded. */

import { memo, type RefObject, useImperativeHandle, useMemo, useRef } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { Icon } from "@/design/icon";
import { formatDay } from "@/format/time";
import { useKeys } from "@/shell/keys";
import { useDisclosures } from "./disclosure";
import { type Entry, entriesOf } from "./entries";
import { entryAt } from "./entry-element";
import { EventView, RecordsView } from "./event-view";
import { FATES } from "./fates";
import { MessageView } from "./message-view";
import type { Place } from "./place";
import type { LoadedWindow } from "./use-session-window";
import { useTimelineScroll } from "./use-timeline-scroll";
import "./timeline.css";

export interface TimelineHandle {
  /** Scrolls there if it is loaded; false when it must be loaded first. */
  scrollTo: (place: Place) => boolean;
}

interface TimelineProps {
  loaded: LoadedWindow;
  loadBefore: () => void;
  loadAfter: () => void;
  onPosition: (position: number) => void;
  handle: RefObject<TimelineHandle | null>;
}

export function Timeline({ loaded, loadBefore, loadAfter, onPosition, handle }: TimelineProps) {
  const { window: session, generation, grewBefore } = loaded;
  const entries = useMemo(() => (session ? entriesOf(session) : []), [session]);
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const { look, scrollTo } = useTimelineScroll({
    scroller,
    list,
    entries,
    loaded,
    loadBefore,
    loadAfter,
    onPosition,
  });
  useImperativeHandle(handle, () => ({ scrollTo }));
  useEntryKeys(scroller, list, entries.length);

  return (
    <section className="timeline" ref={scroller} tabIndex={0} aria-label="Session" aria-busy={!session}>
      <Virtualizer
        key={generation}
        ref={list}
        scrollRef={scroller}
        data={entries}
        shift={grewBefore}
        bufferSize={600}
        onScroll={look}
      >
        {(entry, index) => <EntryView key={entry.key} entry={entry} index={index} />}
      </Virtualizer>
      {session && !session.hasAfter && <p className="timeline-end">End of session</p>}
    </section>
  );
}

const EntryView = memo(function EntryView({ entry, index }: { entry: Entry; index: number }) {
  const fate =
    entry.kind === "message" && entry.newFate && entry.newFate !== "active" && FATES[entry.newFate];
  return (
    <div className="entry" data-index={index} tabIndex={-1}>
      {entry.newDay && (
        <p className="timeline-day">
          <span>{formatDay(entry.newDay, new Date())}</span>
        </p>
      )}
      {fate && (
        <p className="timeline-fate">
          <Icon name={fate.icon} size={14} /> {fate.text}
        </p>
      )}
      <EntryContent entry={entry} />
    </div>
  );
});

function EntryContent({ entry }: { entry: Entry }) {
  if (entry.kind === "message") return <MessageView entry={entry} />;
  return entry.kind === "event" ? <EventView entry={entry} /> : <RecordsView entry={entry} />;
}

/** j and k move from entry to entry, Enter opens and folds what is in it, x does so everywhere. */
function useEntryKeys(
  scroller: RefObject<HTMLElement | null>,
  list: RefObject<VirtualizerHandle | null>,
  count: number,
): void {
  const disclosures = useDisclosures();
  const handlers = useMemo(() => {
    const move = (step: number) => (event: KeyboardEvent) => {
      const focused = document.activeElement?.closest<HTMLElement>(".entry")?.dataset.index;
      const top = list.current?.findItemIndex((list.current?.scrollOffset ?? 0) + 1) ?? 0;
      const next = focused === undefined ? top : Math.min(Math.max(Number(focused) + step, 0), count - 1);
      event.preventDefault();
      list.current?.scrollToIndex(next, { align: "nearest" });
      requestAnimationFrame(() => entryAt(scroller.current, next)?.focus({ preventScroll: true }));
    };
    return {
      j: move(1),
      k: move(-1),
      x: () => disclosures.setAll(!disclosures.allOpen()),
      Enter: toggleFocused,
    };
  }, [scroller, list, count, disclosures]);
  useKeys(handlers);
}

function toggleFocused(): void {
  if (!document.activeElement?.matches(".entry")) return;
  for (const toggle of document.activeElement.querySelectorAll<HTMLElement>("[data-toggle]")) toggle.click();
}
