/** The landmarks of a session: its prompts, errors, compactions and rewinds. A click jumps there. */

import {
  type FocusEvent,
  type KeyboardEvent,
  memo,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import type { OutlineEntry } from "@/api/types";
import { retryEachFrame } from "@/session/timeline/frames";
import "./sidebar.css";
import { Icon, type IconName } from "@/design/icon";
import { ScrolledList } from "@/design/scrolled-rows";
import { formatClock } from "@/format/time";
import type { UploadLevel } from "@/hub/level";
import { isLeft } from "@/session/fates";
import { commandText } from "@/session/message/message-text";
import { useSessionContext } from "@/session/session-context";

interface OutlineProps {
  entries: OutlineEntry[];
  /** Position at the top of the timeline: the landmark that covers it is marked. */
  position: number;
  onJump: (position: number) => void;
}

export const Outline = memo(function Outline({ entries: all, position, onJump }: OutlineProps) {
  const entries = useMemo(() => all.filter(({ kind }) => kind !== "pin"), [all]);
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
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons in it have the focus
    <div className="outline" ref={around} onKeyDown={onKeyDown} onBlur={onBlur}>
      <Virtualizer
        ref={list}
        scrollRef={scroller}
        data={entries}
        as={ScrolledList}
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

/** Where a key leads from an entry, of `last + 1`. */
const ARROWS: Record<string, (from: number, last: number) => number> = {
  ArrowDown: (from, last) => Math.min(from + 1, last),
  ArrowUp: (from) => Math.max(from - 1, 0),
  Home: () => 0,
  End: (_, last) => last,
};

interface OutlineButtonProps {
  entry: OutlineEntry;
  index: number;
  current: boolean;
  /** Whether the tabulator stops here. */
  stop: boolean;
  /** Whether a key has led here: it takes the focus as soon as it is drawn. */
  focused: boolean;
  onJump: (position: number) => void;
}

/** One landmark in the outline. */
export function OutlineButton({ entry, index, current, stop, focused, onJump }: OutlineButtonProps) {
  const { level } = useSessionContext();
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!focused) return;
    // A button that is far away is not visible until the list has measured it, and takes no focus before.
    return retryEachFrame(() => {
      button.current?.focus({ preventScroll: true });
      return document.activeElement === button.current;
    });
  }, [focused]);
  const left = isLeft(entry.fate ?? "active") ? " outline-left" : "";
  return (
    <button
      ref={button}
      type="button"
      className={`outline-entry outline-${kindOf(entry)}${left}`}
      aria-current={current ? "location" : undefined}
      data-index={index}
      tabIndex={stop ? 0 : -1}
      onClick={() => onJump(entry.position)}
    >
      <span className="outline-mark">{markOf(entry)}</span>
      <span className="outline-text" dir="auto">
        {textOf(entry, level)}
      </span>
      {entry.created_at && <time className="outline-time">{formatClock(entry.created_at)}</time>}
    </button>
  );
}

const ICONS: Record<string, IconName> = {
  command: "flag",
  shell: "terminal",
  compaction: "compact",
  rewind: "rewind",
  error: "cross",
  subagent_prompt: "agent",
};

function kindOf(entry: OutlineEntry): string {
  if (entry.kind === "error") return "error";
  return entry.kind === "compaction" || entry.kind === "rewind" ? "turning" : "prompt";
}

function markOf(entry: OutlineEntry) {
  const icon = ICONS[entry.kind];
  return icon ? <Icon name={icon} size={13} /> : entry.turn;
}

function textOf(entry: OutlineEntry, level: UploadLevel | null): string {
  if (entry.kind === "compaction") return entry.text ? `Compacted (${entry.text})` : "Compacted";
  if (entry.kind === "rewind") return "Rewound";
  if (entry.kind === "error") return entry.text || "Failed answer";
  return commandText(entry.text) || (level === "metrics" ? "(not sent)" : "(no text)");
}
