/** The field in which one looks for something in this session, and where among the hits one is. */

import { type KeyboardEvent, type RefObject, useEffect, useRef } from "react";
import { Icon } from "@/design/icon";
import { formatCount } from "@/format/numbers";
import type { Found } from "./use-find";
import "./find-bar.css";

interface FindBarProps {
  text: string;
  found: Found | null;
  busy: boolean;
  error: Error | null;
  /** Index of the hit one is at. */
  current: number | null;
  field: RefObject<HTMLInputElement | null>;
  onText: (text: string) => void;
  onStep: (step: 1 | -1) => void;
  onClose: () => void;
}

export function FindBar(props: FindBarProps) {
  const { text, found, current, field, onText, onStep, onClose } = props;
  const opened = useRef(false);
  useEffect(() => {
    if (!opened.current) field.current?.select();
    opened.current = true;
  }, [field]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
    else if (event.key === "Enter") onStep(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  };
  const none = !found || found.hits.length === 0;
  return (
    <search className="find-bar">
      <Icon name="search" size={14} />
      <input
        ref={field}
        type="text"
        className="find-field"
        value={text}
        placeholder="Find in this session"
        aria-label="Find in this session"
        onChange={(event) => onText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <output className="find-count">{stateOf(props, current)}</output>
      <button
        type="button"
        className="find-step"
        aria-label="Previous hit"
        disabled={none}
        onClick={() => onStep(-1)}
      >
        <Icon name="up" size={14} />
      </button>
      <button
        type="button"
        className="find-step"
        aria-label="Next hit"
        disabled={none}
        onClick={() => onStep(1)}
      >
        <Icon name="down" size={14} />
      </button>
      <button type="button" className="find-step" aria-label="Close the search" onClick={onClose}>
        <Icon name="cross" size={14} />
      </button>
    </search>
  );
}

function stateOf({ text, found, busy, error }: FindBarProps, current: number | null): string {
  if (error) return "Could not search";
  if (text.trim() === "") return "";
  if (!found) return busy ? "…" : "";
  if (found.hits.length === 0) return found.pending > 0 ? "Nothing yet" : "Nothing";
  const total = `${formatCount(found.hits.length)}${found.cut ? "+" : ""}`;
  return current === null ? total : `${formatCount(current + 1)} of ${total}`;
}
