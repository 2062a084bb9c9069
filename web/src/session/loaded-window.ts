/** Loads a session page by page: around a place, then at either end while the reader scrolls, and as the session grows. */

import { useCallback, useEffect, useReducer, useRef } from "react";
import { getJson, type Parameters } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { SessionUpdate, WindowPage } from "@/api/types";
import { type Place, START } from "./place";
import {
  applyChange,
  extendAfter,
  extendBefore,
  extent,
  openWindow,
  renewTail,
  type SessionWindow,
  tailStart,
  trim,
} from "./window";

const FIRST_PAGE = 60;
const NEXT_PAGE = 80;

export interface LoadedWindow {
  window: SessionWindow | null;
  /** Grows with every jump: the list starts afresh there. */
  generation: number;
  /** What the last jump was for. */
  place: Place;
  /** Whether the last change was made above what stayed: the list then holds what is below in its place. */
  grewBefore: boolean;
  /** Which end grew last. */
  grown: "before" | "after";
  error: Error | null;
}

type Action =
  | { type: "opened"; place: Place; page: WindowPage }
  | { type: "before" | "after"; page: WindowPage }
  | { type: "renewed"; after: number; page: WindowPage }
  | { type: "changed"; change: SessionUpdate }
  | { type: "trimmed" }
  | { type: "failed"; error: Error };

const EMPTY: LoadedWindow = {
  window: null,
  generation: 0,
  place: START,
  grewBefore: false,
  grown: "after",
  error: null,
};

function reduce(state: LoadedWindow, action: Action): LoadedWindow {
  if (action.type === "failed") return { ...state, error: action.error };
  if (action.type === "opened") {
    const { place, page } = action;
    return { ...EMPTY, window: openWindow(page), generation: state.generation + 1, place };
  }
  if (!state.window) return state;
  if (action.type === "trimmed") {
    // What is dropped above is to the list what was added there, the other way round.
    return {
      ...state,
      window: trim(state.window, state.grown === "before"),
      grewBefore: state.grown === "after",
    };
  }
  return {
    ...state,
    window: grow(state.window, action),
    grewBefore: action.type === "before",
    grown: action.type === "before" ? "before" : "after",
    error: null,
  };
}

type Growth = Exclude<Action, { type: "opened" | "failed" | "trimmed" }>;

function grow(window: SessionWindow, action: Growth): SessionWindow {
  switch (action.type) {
    case "before":
      return extendBefore(window, action.page);
    case "after":
      return extendAfter(window, action.page);
    case "renewed":
      return renewTail(window, action.after, action.page);
    case "changed":
      return applyChange(window, action.change);
  }
}

export function useLoadedWindow(sessionId: string) {
  const [state, dispatch] = useReducer(reduce, EMPTY);
  // One request at a time: a jump takes the place of whatever is under way.
  const running = useRef<AbortController | null>(null);
  // A page may be older than a change that is shown already: changes since the request are applied again.
  const meanwhile = useRef<SessionUpdate[]>([]);
  const renewal = useRef({ due: false, start: () => {} });

  const load = useCallback(
    async (parameters: Parameters, jump: boolean, done: (page: WindowPage) => Action) => {
      if (running.current && !jump) return;
      running.current?.abort();
      const own = new AbortController();
      running.current = own;
      meanwhile.current = [];
      try {
        const path = `${sessionPath(sessionId)}/window`;
        dispatch(done(await getJson<WindowPage>(path, parameters, own.signal)));
        for (const change of meanwhile.current) dispatch({ type: "changed", change });
      } catch (error) {
        if (!own.signal.aborted) dispatch({ type: "failed", error: error as Error });
      } finally {
        if (running.current === own) {
          running.current = null;
          if (renewal.current.due) renewal.current.start();
        }
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

  /** Loads the end of the session again, where it is loaded: new messages, and late results. */
  const renew = useCallback(() => {
    renewal.current.due = running.current !== null;
    if (tail === null || running.current) return;
    load({ after: Number.isFinite(tail) ? tail : null, limit: NEXT_PAGE }, false, (page) => ({
      type: "renewed",
      after: tail,
      page,
    }));
  }, [load, tail]);

  useEffect(() => {
    renewal.current.start = renew;
  }, [renew]);

  const apply = useCallback((change: SessionUpdate) => {
    if (running.current) meanwhile.current.push(change);
    dispatch({ type: "changed", change });
  }, []);

  // In a step of its own: the list can grow or shrink at one end at a time.
  const large = state.window !== null && trim(state.window, state.grown === "before") !== state.window;
  useEffect(() => {
    if (large) dispatch({ type: "trimmed" });
  }, [large]);

  return { loaded: state, open, loadBefore, loadAfter, renew, apply };
}
