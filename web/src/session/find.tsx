/** Find in this session: opened by a key or the button above, closed by Escape; what was found stays marked meanwhile. */

import { type RefObject, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { SearchHit } from "@/api/types";
import { useKeys } from "@/shell/keys";
import { FindBar } from "./find-bar";
import { useFindMarks } from "./find-marks";
import { stepFrom, useFind } from "./use-find";

interface FindProps {
  sessionId: string;
  open: boolean;
  onOpen: (open: boolean) => void;
  /** Where the timeline stands. */
  position: number;
  /** What is marked. */
  root: RefObject<HTMLElement | null>;
  onHit: (hit: SearchHit, words: string[]) => void;
}

export function Find({ sessionId, open, onOpen, position, root, onHit }: FindProps) {
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
  const close = () => {
    onOpen(false);
    // The keys that scroll are for what was found.
    root.current?.focus({ preventScroll: true });
  };
  return open ? <OpenFind {...{ sessionId, position, root, onHit, field }} onClose={close} /> : null;
}

type OpenFindProps = Omit<FindProps, "open" | "onOpen"> & {
  field: RefObject<HTMLInputElement | null>;
  onClose: () => void;
};

const NO_WORDS: string[] = [];

/** Milliseconds of rest before what was typed is looked for. */
const REST = 150;

function OpenFind({ sessionId, position, root, onHit, field, onClose }: OpenFindProps) {
  const [text, setText] = useState("");
  const [settled, setSettled] = useState("");
  const [current, setCurrent] = useState<number | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), REST);
    return () => clearTimeout(timer);
  }, [text]);
  const [wanted, setWanted] = useState<1 | -1 | null>(null);
  const { found, busy, stale, error } = useFind(sessionId, settled);
  const words = found?.words ?? NO_WORDS;
  useFindMarks(root, words);

  const step = useCallback(
    (by: 1 | -1) => {
      const next = found && stepFrom(found.hits, current, position, by);
      const hit = next === null ? undefined : found?.hits[next];
      if (!hit) return;
      setCurrent(next);
      onHit(hit, words);
    },
    [found, current, position, onHit, words],
  );
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
  return <FindBar {...{ text, found, busy, error, current, field, onText, onStep, onClose }} />;
}
