/** Loads a session stretch by stretch: around a place, then on at either end as one scrolls, and as it grows. */

import { useCallback, useEffect, useReducer, useRef } from "react";
import { getJson, type Parameters } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { WindowPage } from "@/api/types";
import { type Place, START } from "./place";
import {
  extendAfter,
  extendBefore,
  extent,
  openWindow,
  renewTail,
  type SessionWindow,
  tailStart,
} from "./window";

const FIRST_PAGE = 60;
const NEXT_PAGE = 80;

export interface LoadedWindow {
  window: SessionWindow | null;
  /** Grows with every jump: the list starts afresh there. */
  generation: number;
  /** What the last jump was for. */
  place: Place;
  /** Whether the last stretch was added above what was there. */
  grewBefore: boolean;
  error: Error | null;
}

type Action =
  | { type: "opened"; place: Place; page: WindowPage }
  | { type: "before" | "after"; page: WindowPage }
  | { type: "renewed"; after: number; page: WindowPage }
  | { type: "failed"; error: Error };

const EMPTY: LoadedWindow = { window: null, generation: 0, place: START, grewBefore: false, error: null };

function reduce(state: LoadedWindow, action: Action): LoadedWindow {
  if (action.type === "failed") return { ...state, error: action.error };
  if (action.type === "opened") {
    const { place, page } = action;
    return {
      window: openWindow(page),
      generation: state.generation + 1,
      place,
      grewBefore: false,
      error: null,
    };
  }
  if (!state.window) return state;
  return {
    ...state,
    window: grow(state.window, action),
    grewBefore: action.type === "before",
    error: null,
  };
}

function grow(window: SessionWindow, action: Exclude<Action, { type: "opened" | "failed" }>): SessionWindow {
  switch (action.type) {
    case "before":
      return extendBefore(window, action.page);
    case "after":
      return extendAfter(window, action.page);
    case "renewed":
      return renewTail(window, action.after, action.page);
  }
}

export function useSessionWindow(sessionId: string) {
  const [state, dispatch] = useReducer(reduce, EMPTY);
  // One request at a time: a jump takes the place of whatever is under way.
  const running = useRef<AbortController | null>(null);

  const load = useCallback(
    async (parameters: Parameters, jump: boolean, done: (page: WindowPage) => Action) => {
      if (running.current && !jump) return;
      running.current?.abort();
      const own = new AbortController();
      running.current = own;
      try {
        const path = `${sessionPath(sessionId)}/window`;
        dispatch(done(await getJson<WindowPage>(path, parameters, own.signal)));
      } catch (error) {
        if (!own.signal.aborted) dispatch({ type: "failed", error: error as Error });
      } finally {
        if (running.current === own) running.current = null;
      }
    },
    [sessionId],
  );

  useEffect(() => () => running.current?.abort(), []);

  const open = useCallback(
    (place: Place) =>
      load({ around: place.position, limit: FIRST_PAGE }, true, (page) => ({ type: "opened", place, page })),
    [load],
  );

  const loaded = state.window && extent(state.window);
  const first = loaded?.first;
  const last = loaded?.last;
  const tail = state.window && tailStart(state.window);

  const loadBefore = useCallback(() => {
    if (first === undefined) return;
    load({ before: first, limit: NEXT_PAGE }, false, (page) => ({ type: "before", page }));
  }, [load, first]);

  const loadAfter = useCallback(() => {
    if (last === undefined) return;
    load({ after: last, limit: NEXT_PAGE }, false, (page) => ({ type: "after", page }));
  }, [load, last]);

  /** Asks again for the end of the session, where it is loaded: new messages, and results that came late. */
  const renew = useCallback(() => {
    if (tail === null) return;
    load({ after: tail < 0 ? null : tail, limit: NEXT_PAGE }, false, (page) => ({
      type: "renewed",
      after: tail,
      page,
    }));
  }, [load, tail]);

  return { loaded: state, open, loadBefore, loadAfter, renew };
}
