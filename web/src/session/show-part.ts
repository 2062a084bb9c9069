/** Bringing a part of a message into sight, or the words in it: a long message may hold them far below its start. */

import { entryAt } from "./entry-element";
import { rangesOf } from "./find-marks";
import type { Place } from "./place";

/** Frames in which a part may still be drawn: it opens, its text comes. */
const PATIENCE = 40;

/** As long as the flash of `timeline.css`, in milliseconds. */
const FLASH = 2_600;

export function showPart(scroller: HTMLElement | null, index: number, place: Place, frames = PATIENCE): void {
  if (!scroller || (place.part === null && !place.call)) return;
  const part = entryAt(scroller, index)?.querySelector<HTMLElement>(selectorOf(place));
  const [word] = part && place.words ? rangesOf(part, place.words) : [];
  const target = word?.startContainer.parentElement ?? part;
  if (target && (word || !place.words || frames <= 1)) {
    bringIntoSight(scroller, word ?? target, target);
    if (part && place.call) flash(part);
    return;
  }
  if (frames > 1) requestAnimationFrame(() => showPart(scroller, index, place, frames - 1));
}

function selectorOf({ part, call }: Place): string {
  return call ? `[data-call="${CSS.escape(call)}"]` : `[data-part="${part}"]`;
}

/** Also inside of what scrolls by itself, as long outputs do. */
function bringIntoSight(scroller: HTMLElement, place: Range | Element, target: Element): void {
  const inner = target.closest(".output, .diff, .json-text, .json-code, .code-block") ?? scroller;
  const box = place.getBoundingClientRect();
  const outside = [scroller, inner].some((view) => {
    const frame = view.getBoundingClientRect();
    return box.top < frame.top + 8 || box.top > frame.bottom - (view === scroller ? 120 : 20);
  });
  if (outside) target.scrollIntoView({ block: "center" });
}

export function flash(element: HTMLElement): void {
  element.classList.add("flash");
  setTimeout(() => element.classList.remove("flash"), FLASH);
}
