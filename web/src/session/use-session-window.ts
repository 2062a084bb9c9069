/** Loads a session stretch by stretch: around a place, then on at either end as one scrolls. */

import { useCallback, useEffect, useReducer, useRef } from "react";
import { getJson, type Parameters } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { WindowPage } from "@/api/types";
import { extendAfter, extendBefore, extent, openWindow, type SessionWindow } from "./window";

const FIRST_PAGE = 60;
const NEXT_PAGE = 80;

export interface LoadedWindow {
  window: SessionWindow | null;
  /** Grows with every jump: the list starts afresh there. */
  generation: number;
  /** The position that the last jump was for. */
  around: number;
  /** Whether the last stretch was added above what was there. */
  grewBefore: boolean;
  error: Error | null;
}

type Action =
  | { type: "opened"; around: number; page: WindowPage }
  | { type: "before" | "after"; page: WindowPage }
  | { type: "failed"; error: Error };

const EMPTY: LoadedWindow = { window: null, generation: 0, around: 0, grewBefore: false, error: null };

function reduce(state: LoadedWindow, action: Action): LoadedWindow {
  if (action.type === "failed") return { ...state, error: action.error };
  if (action.type === "opened") {
    return {
      window: openWindow(action.page),
      generation: state.generation + 1,
      around: action.around,
      grewBefore: false,
      error: null,
    };
  }
  if (!state.window) return state;
  const extend = action.type === "before" ? extendBefore : extendAfter;
  return {
    ...state,
    window: extend(state.window, action.page),
    grewBefore: action.type === "before",
    error: null,
  };
}

export function useSessionWindow(sessionId: string) {
  const [state, dispatch] = useReducer(reduce, EMPTY);
  // One request at a time: a jump takes the place of whatever is under way.
  const running = useRef<{ abort: AbortController; jump: boolean } | null>(null);

  const load = useCallback(
    async (parameters: Parameters, jump: boolean, done: (page: WindowPage) => Action) => {
      if (running.current && !jump) return;
      running.current?.abort.abort();
      const own = { abort: new AbortController(), jump };
      running.current = own;
      try {
        const path = `${sessionPath(sessionId)}/window`;
        dispatch(done(await getJson<WindowPage>(path, parameters, own.abort.signal)));
      } catch (error) {
        if (!own.abort.signal.aborted) dispatch({ type: "failed", error: error as Error });
      } finally {
        if (running.current === own) running.current = null;
      }
    },
    [sessionId],
  );

  useEffect(() => () => running.current?.abort.abort(), []);

  const openAround = useCallback(
    (around: number) =>
      load({ around, limit: FIRST_PAGE }, true, (page) => ({ type: "opened", around, page })),
    [load],
  );

  const loaded = state.window && extent(state.window);
  const first = loaded?.first;
  const last = loaded?.last;

  const loadBefore = useCallback(() => {
    if (first === undefined) return;
    load({ before: first, limit: NEXT_PAGE }, false, (page) => ({ type: "before", page }));
  }, [load, first]);

  const loadAfter = useCallback(() => {
    if (last === undefined) return;
    load({ after: last, limit: NEXT_PAGE }, false, (page) => ({ type: "after", page }));
  }, [load, last]);

  return { ...state, openAround, loadBefore, loadAfter };
}
