/** Scrolling of the timeline: jumps to places, reports the position at its top, loads more near its ends. */

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from "react";
import type { VirtualizerHandle } from "virtua";
import { useDisclosures } from "@/session/disclosure";
import type { BranchEntry, Entry } from "@/session/entries";
import { rangesOf } from "@/session/find/find-marks";
import type { LoadedWindow } from "@/session/loaded-window";
import type { Place } from "@/session/place";
import { holds } from "@/session/window";
import { onReaderAction, retryEachFrame } from "./frames";

/** Pixels above the target of a jump, so that some context is visible. */
const ABOVE = 56;

/** Milliseconds in which a jump finds its place while rows are measured; nothing may be added above it meanwhile. */
const SETTLING = 200;

/** Distance to the end of what is loaded at which more is loaded, in entries. */
const NEAR = 12;

interface TimelineScroll {
  scroller: RefObject<HTMLElement | null>;
  list: RefObject<VirtualizerHandle | null>;
  entries: Entry[];
  loaded: LoadedWindow;
  loadBefore: () => void;
  loadAfter: () => void;
  onPosition: (position: number) => void;
}

export function useTimelineScroll(options: TimelineScroll) {
  const { scroller, list, entries, loaded, loadBefore, loadAfter, onPosition } = options;
  const { window: session, generation, place } = loaded;
  const settling = useRef<ReturnType<typeof setTimeout> | null>(null);
  // The position of a jump is its target until the reader does something: a target near the end never gets to the top,
  // and a part in the middle of the screen has other messages above it.
  const atTarget = useRef(false);
  const leaveTarget = useCallback(() => {
    atTarget.current = false;
  }, []);
  useEffect(() => onReaderAction(leaveTarget), [leaveTarget]);

  const look = useCallback(() => {
    if (!list.current || !session || entries.length === 0 || settling.current) return;
    const { scrollOffset, viewportSize } = list.current;
    const top = list.current.findItemIndex(scrollOffset + ABOVE + 1);
    const bottom = list.current.findItemIndex(scrollOffset + viewportSize);
    if (!atTarget.current) onPosition(entries[top]?.position ?? 0);
    if (session.hasBefore && top < NEAR) loadBefore();
    else if (session.hasAfter && bottom >= entries.length - NEAR) loadAfter();
  }, [list, entries, session, loadBefore, loadAfter, onPosition]);
  const newestLook = useRef(look);

  const disclosures = useDisclosures();
  // A place inside a folded branch, until the branch has been unfolded.
  const waiting = useRef<Place | null>(null);
  const stopShowing = useRef(() => {});
  useEffect(() => () => stopShowing.current(), []);

  const go = (to: Place) => {
    const { position } = to;
    const folded = position === null ? null : foldedBranchAt(entries, position);
    if (folded) {
      waiting.current = to;
      disclosures.set(folded.id, true);
      return;
    }
    const index = position === null ? 0 : indexOf(entries, position);
    atTarget.current = true;
    onPosition(Math.min(position ?? entries[0]?.position ?? 0, entries.at(-1)?.position ?? 0));
    list.current?.scrollToIndex(index, { align: "start", offset: index > 0 ? -ABOVE : 0 });
    stopShowing.current();
    stopShowing.current = showPart(scroller.current, entries[index]?.key ?? "", to);
    if (settling.current) clearTimeout(settling.current);
    settling.current = setTimeout(() => {
      settling.current = null;
      newestLook.current();
    }, SETTLING);
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each jump, when its list is there
  useLayoutEffect(() => {
    if (entries.length > 0) go(place);
  }, [generation]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: once the entries of the branch are there
  useLayoutEffect(() => {
    const to = waiting.current;
    waiting.current = null;
    if (to) go(to);
  }, [entries]);

  useEffect(() => {
    newestLook.current = look;
    look();
  }, [look]);

  const scrollTo = (to: Place): boolean => {
    if (!session || !holds(session, to.position)) return false;
    go(to);
    return true;
  };

  return { look, scrollTo, leaveTarget };
}

/** Index of the message at a position; where there is none, of the entry before it. */
function indexOf(entries: Entry[], position: number): number {
  const exact = entries.findIndex(
    (entry) => (entry.kind === "message" || entry.kind === "background") && entry.position === position,
  );
  return exact >= 0
    ? exact
    : Math.max(
        entries.findLastIndex((entry) => entry.position <= position),
        0,
      );
}

/** The folded branch that hides a place, unless the place is the head of it. */
function foldedBranchAt(entries: Entry[], position: number): BranchEntry | null {
  const found = entries.find(
    (entry) => entry.kind === "branch" && !entry.open && entry.position <= position && position <= entry.last,
  );
  return found?.kind === "branch" ? found : null;
}

/** How long something flashes, in milliseconds: a little longer than the animation in `timeline.css`. */
export const FLASH = 2_600;

/** Milliseconds between two searches for words in a part, which may be long. */
const SEARCH_PAUSE = 100;

/**
 * Scrolls a part of a message into view as soon as it is drawn, and to the words in it as soon as these are: a long
 * message may hold them far below its start. Returns a function that ends the wait.
 */
export function showPart(scroller: HTMLElement | null, entryKey: string, place: Place): () => void {
  if (!scroller || (place.part === null && !place.call)) return () => undefined;
  const selector = `.entry[data-entry="${CSS.escape(entryKey)}"] ${selectorOf(place)}`;
  let shown = false;
  let searchedAt = Number.NEGATIVE_INFINITY;
  let foundAt: number | null = null;
  return retryEachFrame(() => {
    const part = scroller.querySelector<HTMLElement>(selector);
    const now = performance.now();
    if (!part || now - searchedAt < SEARCH_PAUSE) return false;
    const word = place.words && firstOf(part, place.words);
    searchedAt = now;
    if (!shown && place.call) flash(part);
    if (!shown || word) scrollIntoSight(scroller, word ?? part, word?.startContainer.parentElement ?? part);
    shown = true;
    if (!place.words) return true;
    if (!word) return false;
    foundAt ??= now;
    // The list still scrolls to the message while it measures rows, which moves the words away again.
    return now - foundAt > 2 * SETTLING;
  });
}

/** Where the longest of these words stands first, which says most about where the others are; as soon as it is drawn. */
function firstOf(part: HTMLElement, words: string[]): Range | undefined {
  return words.length > 0 ? rangesOf(part, words.slice(0, 1))[0] : undefined;
}

function selectorOf({ part, call }: Place): string {
  return call ? `[data-call="${CSS.escape(call)}"]` : `[data-part="${part}"]`;
}

/** Also inside of what scrolls by itself, as long outputs do. */
function scrollIntoSight(scroller: HTMLElement, place: Range | Element, target: Element): void {
  const inner = target.closest(".output, .diff, .json-text, .json-code, .code-block");
  if (inner) centre(inner, place, 20);
  centre(scroller, place, 120);
}

/** Scrolls what is not in a view, or within so many pixels of its lower edge, to the middle: a text may be one element. */
function centre(view: Element, place: Range | Element, margin: number): void {
  const box = place.getBoundingClientRect();
  const frame = view.getBoundingClientRect();
  if (box.top < frame.top + 8 || box.top > frame.bottom - margin)
    view.scrollTop += (box.top + box.bottom) / 2 - (frame.top + frame.bottom) / 2;
  if (box.left < frame.left || box.right > frame.right)
    view.scrollLeft += (box.left + box.right) / 2 - (frame.left + frame.right) / 2;
}

export function flash(element: HTMLElement): void {
  element.classList.add("flash");
  setTimeout(() => element.classList.remove("flash"), FLASH);
}

/** The element of an entry, while it is near enough to be on the page. */
export function entryAt(scroller: HTMLElement | null, index: number): HTMLElement | null {
  return scroller?.querySelector<HTMLElement>(`.entry[data-index="${index}"]`) ?? null;
}
