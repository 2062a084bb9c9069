/** One landmark in the outline. */

import { useEffect, useRef } from "react";
import type { OutlineEntry } from "@/api/types";
import { Icon, type IconName } from "@/design/icon";
import { formatClock } from "@/format/time";
import { commandText } from "./command-text";
import { isLeft } from "./fates";

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

export function OutlineButton({ entry, index, current, stop, focused, onJump }: OutlineButtonProps) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!focused) return;
    let frame = 0;
    // What is far away is not visible until the list has measured it, and takes no focus before.
    const take = () => {
      button.current?.focus({ preventScroll: true });
      if (document.activeElement !== button.current) frame = requestAnimationFrame(take);
    };
    take();
    return () => cancelAnimationFrame(frame);
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
        {textOf(entry)}
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

function textOf(entry: OutlineEntry): string {
  if (entry.kind === "compaction") return entry.text ? `Compacted (${entry.text})` : "Compacted";
  if (entry.kind === "rewind") return "Rewound";
  if (entry.kind === "error") return entry.text || "An answer that failed";
  return commandText(entry.text) || "(no text)";
}
