/** Plays a session: where it stands, and what moves it on. */

import { useCallback, useEffect, useMemo, useState } from "react";
import { type Moment, momentsOf, pauseBetween, windowAt } from "./replay";
import type { LoadedWindow } from "./use-session-window";

export const SPEEDS = [1, 2, 4, 8, 16];

export interface Replay {
  /** Null while nothing is played. */
  position: number | null;
  playing: boolean;
  speed: number;
  /** When what was shown last came. */
  at: number | null;
  start: (position: number) => void;
  stop: () => void;
  toggle: () => void;
  step: (by: 1 | -1) => void;
  seek: (position: number) => void;
  setSpeed: (speed: number) => void;
}

/** The replay, and what is to be shown of what is loaded. */
export function useReplay(loaded: LoadedWindow, loadAfter: () => void): [Replay, LoadedWindow] {
  const [position, setPosition] = useState<number | null>(null);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(4);
  const { window: session } = loaded;
  const active = position !== null;
  const moments = useMemo(() => (session && active ? momentsOf(session) : []), [session, active]);
  const before =
    position === null ? null : (moments.findLast((moment) => moment.position <= position) ?? null);
  const next = position === null ? null : (moments.find((moment) => moment.position > position) ?? null);

  useNext({
    playing,
    before,
    next,
    speed,
    hasAfter: session?.hasAfter ?? false,
    loadAfter,
    setPosition,
    setPlaying,
  });

  const step = useCallback(
    (by: 1 | -1) => {
      setPlaying(false);
      const to = by === 1 ? next : moments.findLast((moment) => moment.position < (before?.position ?? 0));
      if (to) setPosition(to.position);
    },
    [next, before, moments],
  );
  const start = useCallback((from: number) => {
    setPosition(from);
    setPlaying(true);
  }, []);
  const stop = useCallback(() => {
    setPosition(null);
    setPlaying(false);
  }, []);
  const toggle = useCallback(() => setPlaying((now) => !now), []);

  const shown = useMemo(
    () =>
      session && position !== null
        ? { ...loaded, window: windowAt(session, position), grewBefore: false }
        : loaded,
    [loaded, session, position],
  );
  const at = before?.at ?? null;
  return [{ position, playing, speed, at, start, stop, toggle, step, seek: setPosition, setSpeed }, shown];
}

interface Next {
  playing: boolean;
  before: Moment | null;
  next: Moment | null;
  speed: number;
  hasAfter: boolean;
  loadAfter: () => void;
  setPosition: (position: number) => void;
  setPlaying: (playing: boolean) => void;
}

/** Waits for the next moment; loads on where there is none, and ends where there is nothing more. */
function useNext({ playing, before, next, speed, hasAfter, loadAfter, setPosition, setPlaying }: Next): void {
  useEffect(() => {
    if (!playing) return;
    if (!next) {
      if (hasAfter) loadAfter();
      else setPlaying(false);
      return;
    }
    const timer = setTimeout(() => setPosition(next.position), pauseBetween(before, next, speed));
    return () => clearTimeout(timer);
  }, [playing, before, next, speed, hasAfter, loadAfter, setPosition, setPlaying]);
}
