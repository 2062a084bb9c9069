/** The landmarks of a session: its prompts, and where its context was compacted or rewound. They jump there. */

import { memo, useEffect, useRef } from "react";
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
  const list = useRef<HTMLOListElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever another landmark is the current one
  useEffect(() => {
    const marked = list.current?.querySelector("[aria-current]");
    marked?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <ol className="outline" ref={list}>
      {entries.map((entry, index) => (
        <li key={`${entry.kind}/${entry.position}/${index}`}>
          <button
            type="button"
            className={`outline-entry outline-${kindOf(entry)}${isLeft(entry.fate ?? "active") ? " outline-left" : ""}`}
            aria-current={index === current ? "location" : undefined}
            onClick={() => onJump(entry.position)}
          >
            <span className="outline-mark">{markOf(entry)}</span>
            <span className="outline-text">{textOf(entry)}</span>
            {entry.created_at && <time className="outline-time">{formatClock(entry.created_at)}</time>}
          </button>
        </li>
      ))}
    </ol>
  );
});

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
