/** The state of a replay: its position, speed, and what moves it on. */

import { useCallback, useEffect, useMemo, useState } from "react";
import type { LoadedWindow } from "@/session/loaded-window";
import { type Place, placeAt } from "@/session/place";
import { holds } from "@/session/window";
import { type Moment, useMoments, windowAt } from "./moments";

export const SPEEDS = [1, 2, 4, 8, 16];

export interface Replay {
  /** Null while nothing is played. */
  position: number | null;
  playing: boolean;
  speed: number;
  /** When the last shown entry was added: milliseconds since 1970. */
  at: number | null;
  error: Error | null;
  start: (position: number) => void;
  stop: () => void;
  toggle: () => void;
  step: (by: 1 | -1) => void;
  seek: (position: number) => void;
  setSpeed: (speed: number) => void;
}

interface Session {
  id: string;
  loaded: LoadedWindow;
  loadAfter: () => void;
  open: (place: Place) => void;
}

/** The replay, and what is to be shown of what is loaded. */
export function useReplay({ id, loaded, loadAfter, open }: Session): [Replay, LoadedWindow] {
  const [position, setPosition] = useState<number | null>(null);
  const [origin, setOrigin] = useState<number | null>(null);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState(4);
  const { window: session } = loaded;
  const { known, more, error } = useMoments(id, origin, position, speed);
  const here = position === null ? -1 : known.findLastIndex((moment) => moment.position <= position);
  const before = known[here] ?? null;
  const next = position === null ? null : (known[here + 1] ?? null);
  const isLoaded = next !== null && session !== null && holds(session, next.position);

  useNext({ playing, next, isLoaded, more, loadAfter, setPosition, setPlaying });

  const step = useCallback(
    (by: 1 | -1) => {
      setPlaying(false);
      const to = known[here + by];
      if (!to) return;
      setPosition(to.position);
      if (session && !holds(session, to.position)) open(placeAt(to.position));
    },
    [known, here, session, open],
  );
  const seek = useCallback(
    (to: number) => {
      setPosition(to);
      const [first, last] = [known[0], known.at(-1)];
      if (!first || !last || to < first.position || to > last.position) setOrigin(to);
    },
    [known],
  );
  const start = useCallback((from: number) => {
    setPosition(from);
    setOrigin(from);
    setPlaying(true);
  }, []);
  const stop = useCallback(() => {
    setPosition(null);
    setOrigin(null);
    setPlaying(false);
  }, []);
  const toggle = useCallback(() => setPlaying((now) => !now), []);
  const changeSpeed = useCallback(
    (to: number) => {
      setSpeed(to);
      setOrigin(position);
    },
    [position],
  );

  const shown = useMemo(
    () =>
      session && position !== null
        ? { ...loaded, window: windowAt(session, position), grewBefore: false }
        : loaded,
    [loaded, session, position],
  );
  const at = before?.at ?? null;
  const replay = {
    position,
    playing,
    speed,
    at,
    error,
    start,
    stop,
    toggle,
    step,
    seek,
    setSpeed: changeSpeed,
  };
  return [replay, shown];
}

interface Next {
  playing: boolean;
  next: Moment | null;
  /** Whether the next entry is loaded. */
  isLoaded: boolean;
  /** Whether there are moments that are not known yet. */
  more: boolean;
  loadAfter: () => void;
  setPosition: (position: number) => void;
  setPlaying: (playing: boolean) => void;
}

/** Waits for the next moment, loads what it shows, and ends where there is nothing more. */
function useNext({ playing, next, isLoaded, more, loadAfter, setPosition, setPlaying }: Next): void {
  useEffect(() => {
    if (!playing) return;
    if (!next) {
      if (!more) setPlaying(false);
      return;
    }
    if (!isLoaded) {
      loadAfter();
      return;
    }
    const timer = setTimeout(() => setPosition(next.position), next.delay * 1000);
    return () => clearTimeout(timer);
  }, [playing, next, isLoaded, more, loadAfter, setPosition, setPlaying]);
}
