/** The landmarks of a session: its prompts, and where its context was compacted or rewound. They jump there. */

import { memo, useCallback, useEffect, useRef } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import type { OutlineEntry } from "@/api/types";
import { Icon, type IconName } from "@/design/icon";
import { formatClock } from "@/format/time";
import { commandText } from "./command-text";
import { isLeft } from "./fates";
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
  return (
    <div className="outline" ref={around}>
      <Virtualizer ref={list} scrollRef={scroller} data={entries} as="ol" item="li" bufferSize={400}>
        {(entry, index) => (
          <OutlineButton
            key={`${entry.kind}/${entry.position}/${index}`}
            entry={entry}
            current={index === current}
            onJump={onJump}
          />
        )}
      </Virtualizer>
    </div>
  );
});

interface OutlineButtonProps {
  entry: OutlineEntry;
  current: boolean;
  onJump: (position: number) => void;
}

function OutlineButton({ entry, current, onJump }: OutlineButtonProps) {
  const left = isLeft(entry.fate ?? "active") ? " outline-left" : "";
  return (
    <button
      type="button"
      className={`outline-entry outline-${kindOf(entry)}${left}`}
      aria-current={current ? "location" : undefined}
      onClick={() => onJump(entry.position)}
    >
      <span className="outline-mark">{markOf(entry)}</span>
      <span className="outline-text">{textOf(entry)}</span>
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

function textOf(entry: OutlineEntry): string {
  if (entry.kind === "compaction") return entry.text ? `Compacted (${entry.text})` : "Compacted";
  if (entry.kind === "rewind") return "Rewound";
  if (entry.kind === "error") return entry.text || "An answer that failed";
  return commandText(entry.text) || "(no text)";
}
