/** The session itself: a list of which only what is in sight is on the page, and only what is near is loaded. */

import {
  memo,
  type RefObject,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useMemo,
  useRef,
} from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { Icon } from "@/design/icon";
import { formatDay } from "@/format/time";
import { useKeys } from "@/shell/keys";
import { useDisclosures } from "./disclosure";
import { type Entry, entriesOf } from "./entries";
import { EventView, RecordsView } from "./event-view";
import { FATES } from "./fates";
import { MessageView } from "./message-view";
import type { Place } from "./place";
import type { LoadedWindow } from "./use-session-window";
import { holds } from "./window";
import "./timeline.css";

/** Room above what was jumped to, so that one sees where one is. */
const ABOVE = 56;

/** How near the end of what is loaded one may come before more is asked for, in entries. */
const NEAR = 12;

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
  const { window: session, generation, place, grewBefore } = loaded;
  const entries = useMemo(() => (session ? entriesOf(session) : []), [session]);
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);

  const go = ({ position, part }: Place) => {
    const index = position === null ? 0 : indexOf(entries, position);
    list.current?.scrollToIndex(index, { align: "start", offset: index > 0 ? -ABOVE : 0 });
    if (part !== null) requestAnimationFrame(() => showPart(scroller.current, index, part));
  };

  const look = useCallback(() => {
    if (!list.current || !session || entries.length === 0) return;
    const { scrollOffset, viewportSize } = list.current;
    const top = list.current.findItemIndex(scrollOffset + ABOVE + 1);
    const bottom = list.current.findItemIndex(scrollOffset + viewportSize);
    onPosition(entries[top]?.position ?? 0);
    if (session.hasBefore && top < NEAR) loadBefore();
    else if (session.hasAfter && bottom >= entries.length - NEAR) loadAfter();
  }, [entries, session, loadBefore, loadAfter, onPosition]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each jump, when its list is there
  useLayoutEffect(() => {
    if (entries.length > 0) go(place);
  }, [generation]);

  useEffect(look, [look]);

  useImperativeHandle(handle, () => ({
    scrollTo: (to) => {
      if (!session || !holds(session, to.position)) return false;
      go(to);
      return true;
    },
  }));

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

/** The message at a position; where there is none, what stands before it. */
function indexOf(entries: Entry[], position: number): number {
  const exact = entries.findIndex((entry) => entry.kind === "message" && entry.position === position);
  return exact >= 0
    ? exact
    : Math.max(
        entries.findLastIndex((entry) => entry.position <= position),
        0,
      );
}

/** A part of a long message may be far below the start of the message. */
function showPart(scroller: HTMLElement | null, index: number, part: number): void {
  const element = entryAt(scroller, index)?.querySelector(`[data-part="${part}"]`);
  if (!scroller || !element) return;
  const below = element.getBoundingClientRect().top > scroller.getBoundingClientRect().bottom - 120;
  if (below) element.scrollIntoView({ block: "center" });
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

function entryAt(scroller: HTMLElement | null, index: number): HTMLElement | null {
  return scroller?.querySelector<HTMLElement>(`.entry[data-index="${index}"]`) ?? null;
}
