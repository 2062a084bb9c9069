/** What a player has: play and pause, a step either way, how fast, and where. */

import { useEffect, useMemo, useRef } from "react";
import { Icon } from "@/design/icon";
import { formatExact, formatSecond } from "@/format/time";
import { useKeys } from "@/shell/keys";
import { type Replay, SPEEDS } from "./replay";
import "./replay-bar.css";

interface ReplayBarProps {
  replay: Replay;
  first: number;
  last: number;
  /** Goes to a place that may not be loaded yet. */
  onSeek: (position: number) => void;
}

export function ReplayBar({ replay, first, last, onSeek }: ReplayBarProps) {
  const { position, playing, speed, at, toggle, step, stop, setSpeed } = replay;
  const handlers = useMemo(
    () => ({
      " ": (event: KeyboardEvent) => {
        if (event.target instanceof HTMLButtonElement) return;
        event.preventDefault();
        toggle();
      },
      ".": () => step(1),
      ",": () => step(-1),
      Escape: stop,
    }),
    [toggle, step, stop],
  );
  useKeys(handlers);
  // The focus moves here with the replay's start: on the button that started it, space would start it again.
  const toggler = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    toggler.current?.focus();
    return () => {
      if (before instanceof HTMLElement && document.activeElement === document.body) before.focus();
    };
  }, []);
  return (
    <section className="replay-bar" aria-label="Replay">
      <button type="button" className="button" onClick={() => step(-1)} aria-label="Step back" title="Key: ,">
        <Icon name="back" size={14} />
      </button>
      <button
        type="button"
        className="button"
        ref={toggler}
        onClick={toggle}
        aria-label={playing ? "Pause" : "Play"}
        title="Key: space"
      >
        <Icon name={playing ? "pause" : "play"} size={14} /> <span>{playing ? "Pause" : "Play"}</span>
      </button>
      <button
        type="button"
        className="button"
        onClick={() => step(1)}
        aria-label="Step forward"
        title="Key: ."
      >
        <Icon name="arrow" size={14} />
      </button>
      <input
        type="range"
        className="replay-place"
        aria-label="Position in the session"
        min={first}
        max={last}
        value={Math.min(Math.max(position ?? first, first), last)}
        aria-valuetext={at === null ? undefined : formatExact(new Date(at).toISOString())}
        onChange={(event) => onSeek(Number(event.target.value))}
      />
      <time className="replay-clock">{at === null ? "" : formatSecond(at)}</time>
      <select
        className="field"
        aria-label="Speed"
        value={speed}
        onChange={(event) => setSpeed(Number(event.target.value))}
      >
        {SPEEDS.map((choice) => (
          <option key={choice} value={choice}>
            {choice}×
          </option>
        ))}
      </select>
      <button type="button" className="button" onClick={stop} aria-label="End the replay" title="Key: Esc">
        <Icon name="cross" size={14} />
      </button>
    </section>
  );
}
