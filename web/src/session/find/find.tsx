/** Find in this session: opened by a key or the button, closed by Escape. Hits are marked while it is open. */

import {
  type KeyboardEvent as ReactKeyboardEvent,
  type RefObject,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import type { SearchHit } from "@/api/types";
import { Icon } from "@/design/icon";
import { formatCount, plural } from "@/format/numbers";
import { useKeys } from "@/shell/keys";
import { type Found, stepFrom, useFindHits } from "./find-hits";
import { useFindMarks } from "./find-marks";
import "./find.css";

interface FindProps {
  sessionId: string;
  open: boolean;
  onOpen: (open: boolean) => void;
  /** The position at the top of the timeline. */
  position: number;
  /** What is marked. */
  root: RefObject<HTMLElement | null>;
  onHit: (hit: SearchHit) => void;
  /** What is found at first, from the address: a whole query, and the hit that was opened. */
  first: FirstFind | null;
}

export interface FirstFind {
  query: string;
  messageId: string | null;
  part: number | null;
}

export function Find({ sessionId, open, onOpen, position, root, onHit, first }: FindProps) {
  const field = useRef<HTMLInputElement>(null);
  const handlers = useMemo(() => {
    const show = (event: KeyboardEvent) => {
      event.preventDefault();
      onOpen(true);
      field.current?.select();
    };
    return { f: show, "Ctrl+f": show };
  }, [onOpen]);
  useKeys(handlers);
  const close = useCallback(() => {
    onOpen(false);
    // The keys that scroll are for what was found.
    root.current?.focus({ preventScroll: true });
  }, [onOpen, root]);
  return open ? <OpenFind {...{ sessionId, position, root, onHit, field, first }} onClose={close} /> : null;
}

type OpenFindProps = Omit<FindProps, "open" | "onOpen"> & {
  field: RefObject<HTMLInputElement | null>;
  onClose: () => void;
};

const NO_WORDS: string[] = [];

/** Milliseconds of rest before what was typed is looked for. */
const REST = 150;

function OpenFind({ sessionId, position, root, onHit, field, first, onClose }: OpenFindProps) {
  const query = first?.query ?? "";
  const [text, setText] = useState(query);
  const [settled, setSettled] = useState(query);
  const [current, setCurrent] = useState<number | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), REST);
    return () => clearTimeout(timer);
  }, [text]);
  const [wanted, setWanted] = useState<1 | -1 | null>(null);
  const { found, busy, stale, error } = useFindHits(sessionId, settled, query !== "" && settled === query);
  const words = found?.words ?? NO_WORDS;
  useFindMarks(root, words);

  const step = useCallback(
    (by: 1 | -1) => {
      const next = found && stepFrom(found.hits, current, position, by);
      const hit = next === null ? undefined : found?.hits[next];
      if (!hit) return;
      setCurrent(next);
      onHit(hit);
    },
    [found, current, position, onHit],
  );
  // The hit that was opened from a search is the current one, and its words are scrolled to.
  const opened = useRef(false);
  useEffect(() => {
    if (opened.current || !first || !found || stale || text !== first.query) return;
    opened.current = true;
    const index = found.hits.findIndex(
      (hit) => hit.message_id === first.messageId && (first.part === null || hit.part === first.part),
    );
    const hit = found.hits[index];
    if (!hit) return;
    setCurrent(index);
    onHit(hit);
  }, [first, found, stale, text, onHit]);
  const keys = useMemo(() => ({ n: () => step(1), p: () => step(-1), Escape: onClose }), [step, onClose]);
  useKeys(keys);

  // Enter right after the last letter waits for its hits.
  const ready = settled === text && !stale && found !== null;
  useEffect(() => {
    if (wanted === null || !ready) return;
    setWanted(null);
    step(wanted);
  }, [wanted, ready, step]);
  const onStep = (by: 1 | -1) => {
    setSettled(text);
    setWanted(by);
  };
  const onText = (typed: string) => {
    setText(typed);
    setCurrent(null);
    setWanted(null);
  };
  return (
    <FindBar
      {...{ text, found, busy, error, current, field, onText, onStep, onClose }}
      quiet={query !== ""}
    />
  );
}

interface FindBarProps {
  text: string;
  found: Found | null;
  busy: boolean;
  error: Error | null;
  /** Index of the current hit. */
  current: number | null;
  field: RefObject<HTMLInputElement | null>;
  onText: (text: string) => void;
  onStep: (step: 1 | -1) => void;
  onClose: () => void;
  /** The field is not focused: keys are for what was found. */
  quiet?: boolean;
}

/** The field, and the number of the current hit. */
export function FindBar(props: FindBarProps) {
  const { text, found, current, field, onText, onStep, onClose, quiet } = props;
  const opened = useRef(false);
  useEffect(() => {
    if (!opened.current && !quiet) field.current?.select();
    opened.current = true;
  }, [field, quiet]);
  const onKeyDown = (event: ReactKeyboardEvent) => {
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
  if (error) return "Search failed";
  if (text.trim() === "") return "";
  if (!found) return busy ? "…" : "";
  if (found.hits.length === 0) return found.unindexed > 0 ? "No hits yet" : "No hits";
  // A hit is a block, such as an output, in which many places may be marked.
  const total = found.cut ? `${formatCount(found.hits.length)}+ blocks` : plural(found.hits.length, "block");
  return current === null ? total : `${formatCount(current + 1)} of ${total}`;
}
