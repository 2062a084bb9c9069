/**
 * Marks what was found in what is drawn. The marks are the browser's own highlights over ranges of text: the elements
 * stay as they are, and what is drawn later is marked as it comes.
 */

import { type RefObject, useEffect } from "react";

const NAME = "found";

/** So many marks are enough for a screen, and for some more. */
const MOST = 1500;

export function useFindMarks(root: RefObject<HTMLElement | null>, words: string[]): void {
  useEffect(() => {
    const element = root.current;
    if (!element || words.length === 0 || !("highlights" in CSS)) return;
    let frame = 0;
    const mark = () => {
      CSS.highlights.set(NAME, new Highlight(...rangesOf(element, words)));
    };
    const later = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(mark);
    };
    const observer = new MutationObserver(later);
    observer.observe(element, { childList: true, subtree: true, characterData: true });
    later();
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
      CSS.highlights.delete(NAME);
    };
  }, [root, words]);
}

/** Where these words (in lower case) stand in the text of an element. */
export function rangesOf(element: Node, words: string[]): Range[] {
  const ranges: Range[] = [];
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node && ranges.length < MOST; node = texts.nextNode()) {
    for (const [start, end] of placesIn(node.nodeValue ?? "", words)) {
      const range = document.createRange();
      range.setStart(node, start);
      range.setEnd(node, end);
      ranges.push(range);
    }
  }
  return ranges;
}

/** Start and end of each word in a text, in any case; of two that overlap the longer. */
export function placesIn(text: string, words: string[]): [start: number, end: number][] {
  const lower = text.toLowerCase();
  // Lower case may be longer ("İ"): then places in it are none in the text.
  if (lower.length !== text.length) return [];
  const places: [number, number][] = [];
  for (const word of words) {
    for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + word.length)) {
      if (!places.some(([start, end]) => at < end && at + word.length > start)) {
        places.push([at, at + word.length]);
      }
    }
  }
  return places.sort((one, other) => one[0] - other[0]);
}
