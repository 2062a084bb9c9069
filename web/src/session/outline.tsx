/** The landmarks of a session: its prompts, and where its context was compacted or rewound. They jump there. */

import {
  type FocusEvent,
  type KeyboardEvent,
  type MouseEvent,
  memo,
  useCallback,
  useEffect,
  useRef,
  useState,
} from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import type { OutlineEntry } from "@/api/types";
import { OutlineButton } from "./outline-button";
import "./outline.css";

interface OutlineProps {
  entries: OutlineEntry[];
  /** Position at the top of the timeline: the landmark that covers it is marked. */
  position: number;
  onJump: (position: number) => void;
}

export const Outline = memo(function Outline({ entries, position, onJump }: OutlineProps) {
  const current = entries.findLastIndex((entry) => entry.position <= position);
  const list = useRef<VirtualizerHandle>(null);
  // What scrolls is around it: the column beside the timeline, or the drawer.
  const scroller = useRef<HTMLElement | null>(null);
  const around = useCallback((element: HTMLElement | null) => {
    scroller.current = element?.parentElement ?? null;
  }, []);
  useEffect(() => {
    if (current >= 0) list.current?.scrollToIndex(current, { align: "nearest" });
  }, [current]);
  // One stop of the tabulator, however many there are; the arrows go on from there.
  const [focused, setFocused] = useState<number | null>(null);
  const stop = focused ?? Math.max(current, 0);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const from = Number((event.target as HTMLElement).dataset.index ?? stop);
    const to = ARROWS[event.key]?.(from, entries.length - 1);
    if (to === undefined) return;
    event.preventDefault();
    setFocused(to);
    list.current?.scrollToIndex(to, { align: "nearest" });
  };
  const onBlur = (event: FocusEvent<HTMLElement>) => {
    const to = event.relatedTarget;
    if (to && !event.currentTarget.contains(to)) setFocused(null);
  };
  // Rows still move while they are measured: a click that lost its row is for the one it began on.
  const pressed = useRef<number | null>(null);
  const onMouseDown = (event: MouseEvent<HTMLElement>) => {
    pressed.current = rowOf(event);
  };
  const onClick = (event: MouseEvent<HTMLElement>) => {
    const entry = rowOf(event) === null && pressed.current !== null ? entries[pressed.current] : undefined;
    if (entry) onJump(entry.position);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons in it have the focus
    <div
      className="outline"
      ref={around}
      onKeyDown={onKeyDown}
      onBlur={onBlur}
      onMouseDown={onMouseDown}
      onClick={onClick}
    >
      <Virtualizer
        ref={list}
        scrollRef={scroller}
        data={entries}
        as="ol"
        item="li"
        bufferSize={400}
        keepMounted={[stop]}
      >
        {(entry, index) => (
          <OutlineButton
            key={`${entry.kind}/${entry.position}/${index}`}
            entry={entry}
            index={index}
            current={index === current}
            stop={index === stop}
            focused={index === focused}
            onJump={onJump}
          />
        )}
      </Virtualizer>
    </div>
  );
});

/** The entry under the pointer; null between two. */
function rowOf({ target }: MouseEvent<HTMLElement>): number | null {
  const row = (target as Element).closest<HTMLElement>("[data-index]");
  return row ? Number(row.dataset.index) : null;
}

/** Where a key leads from an entry, of `last + 1`. */
const ARROWS: Record<string, (from: number, last: number) => number> = {
  ArrowDown: (from, last) => Math.min(from + 1, last),
  ArrowUp: (from) => Math.max(from - 1, 0),
  Home: () => 0,
  End: (_, last) => last,
};
