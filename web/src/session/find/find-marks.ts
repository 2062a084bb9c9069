/**
 * Marks what was found in what is drawn. The marks are the browser's own highlights over ranges of text: the elements
 * stay as they are, and what is drawn later is marked as it comes.
 */

import { type RefObject, useEffect } from "react";

const NAME = "found";

/** A long output may have a match a line; the one that was opened may be its last. */
const MOST = 20_000;

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

/** Where these words stand in the text of an element, also where colours or links cut a word in pieces. */
export function rangesOf(element: Node, words: string[]): Range[] {
  const ranges: Range[] = [];
  for (const nodes of stretches(element)) {
    const text = nodes.map(({ nodeValue }) => nodeValue ?? "").join("");
    let [index, before] = [0, 0];
    for (const [start, end] of placesIn(text, words)) {
      if (ranges.length === MOST) return ranges;
      const range = document.createRange();
      for (const [at, set] of [
        [start, "setStart"],
        [end, "setEnd"],
      ] as const) {
        // The end of a node is no beginning of a mark, but may be its end.
        const isBehind = (length: number) =>
          set === "setEnd" ? at > before + length : at >= before + length;
        while (index < nodes.length - 1 && isBehind(lengthOf(nodes[index])))
          before += lengthOf(nodes[index++]);
        const node = nodes[index];
        if (node) range[set](node, at - before);
      }
      ranges.push(range);
    }
  }
  return ranges;
}

function lengthOf(node: Node | undefined): number {
  return node?.nodeValue?.length ?? 0;
}

/** Elements within a line of text. */
const INLINE = new Set([
  "A",
  "B",
  "CODE",
  "DEL",
  "EM",
  "I",
  "INS",
  "KBD",
  "MARK",
  "S",
  "SPAN",
  "STRONG",
  "SUB",
  "SUP",
]);

/** Nodes of text that follow each other without a border between blocks. */
function* stretches(element: Node): Generator<Node[]> {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  let nodes: Node[] = [];
  let block: Node | null = null;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const isText = node.nodeType === Node.TEXT_NODE;
    const next: Node | null = isText ? blockOf(node) : block;
    if (isText ? next !== block : !INLINE.has(node.nodeName)) {
      if (nodes.length > 0) yield nodes;
      nodes = [];
    }
    block = next;
    if (isText) nodes.push(node);
  }
  if (nodes.length > 0) yield nodes;
}

function blockOf(node: Node): Node | null {
  let parent = node.parentNode;
  while (parent && INLINE.has(parent.nodeName)) parent = parent.parentNode;
  return parent;
}

/** Start and end of each word in a text, in any case; of two that begin at one place the first of `words`. */
export function placesIn(text: string, words: string[]): [start: number, end: number][] {
  const pattern = patternOf(words);
  return [...text.matchAll(pattern)].map((match) => [match.index, match.index + match[0].length]);
}

/** Borders of a word, as search finds it: Chinese, Japanese and Korean have none. */
const CJK = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}]";
const LETTER = `[[\\p{L}\\p{N}]--${CJK}]`;
const BEGINS = new RegExp(`^${LETTER}`, "v");
const ENDS = new RegExp(`${LETTER}$`, "v");

/** A snippet has one space where its text has any blanks, such as the end of a line. */
function patternOf(words: string[]): RegExp {
  const patterns = words.map((word) => {
    const pieces = word.split(/\s+/).map((piece) => piece.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
    const before = BEGINS.test(word) ? `(?<!${LETTER})` : "";
    const after = ENDS.test(word) ? `(?!${LETTER})` : "";
    return `${before}${pieces.join("\\s+")}${after}`;
  });
  return new RegExp(patterns.join("|"), "giv");
}
