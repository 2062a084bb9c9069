/** Keys that go from landmark to landmark: prompts, errors, edits; and to the ends. */

import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { getJson, type Parameters } from "@/api/client";
import { TOOL_CALLS } from "@/api/paths";
import type { OutlineEntry, ToolCall, ToolCallPage } from "@/api/types";
import { END, type Place, placeAt, START } from "@/session/place";
import { useKeys } from "@/shell/keys";

interface JumpKeys {
  sessionId: string;
  outline: OutlineEntry[];
  /** The position to go on from, at the moment of a key press. */
  positionNow: () => number;
  jump: (place: Place) => void;
  /** While something is being found, `n` and `p` go from hit to hit. */
  finding: boolean;
}

type Step = 1 | -1;

/** Landmarks that are passed on the way from prompt to prompt. */
const NO_PROMPTS: ReadonlySet<string> = new Set(["error", "pin"]);

/** The query of each kind of landmark among tool calls. */
const CALLS: Record<"errors" | "edits", Parameters> = {
  errors: { failed: true },
  edits: { kind: "edit" },
};

export function useJumpKeys({ sessionId, outline, positionNow, jump, finding }: JumpKeys): void {
  const queries = useQueryClient();
  const handlers = useMemo(() => {
    const go = (find: () => Place | null) => (event: KeyboardEvent) => {
      const place = find();
      if (!place) return;
      event.preventDefault();
      jump(place);
    };
    const calls = (kind: keyof typeof CALLS) =>
      queries.fetchQuery({
        queryKey: ["calls", sessionId, kind],
        queryFn: ({ signal }) => allCalls({ session: sessionId, ...CALLS[kind] }, signal),
      });
    const walk = (kind: keyof typeof CALLS, step: Step) => async (event: KeyboardEvent) => {
      event.preventDefault();
      const from = positionNow();
      const failures = kind === "errors" ? outline.filter((entry) => entry.kind === "error") : [];
      const places = [
        ...(await calls(kind)).map(placeOf),
        ...failures.map((entry) => placeAt(entry.position)),
      ];
      const next = following(places, from, step);
      if (next) jump(next);
    };
    const prompts = outline
      .filter((entry) => !NO_PROMPTS.has(entry.kind))
      .map((entry) => placeAt(entry.position));
    return {
      ...(finding
        ? {}
        : {
            n: go(() => following(prompts, positionNow(), 1)),
            p: go(() => following(prompts, positionNow(), -1) ?? START),
          }),
      e: walk("errors", 1),
      E: walk("errors", -1),
      d: walk("edits", 1),
      D: walk("edits", -1),
      Home: go(() => START),
      End: go(() => END),
    };
  }, [queries, sessionId, outline, positionNow, jump, finding]);
  useKeys(handlers);
}

/** The nearest place in a direction from a position; null when there is none. */
export function following(places: Place[], position: number, step: Step): Place | null {
  const beyond = places.filter((place) => step * ((place.position ?? 0) - position) > 0);
  return beyond.reduce<Place | null>((nearest, place) => {
    const nearer = nearest === null || step * ((place.position ?? 0) - (nearest.position ?? 0)) < 0;
    return nearer ? place : nearest;
  }, null);
}

function placeOf(call: ToolCall): Place {
  return { position: call.position, part: null, call: call.tool_call_id };
}

const PAGE = 200;

async function allCalls(parameters: Parameters, signal: AbortSignal): Promise<ToolCall[]> {
  const calls: ToolCall[] = [];
  let cursor: string | null = null;
  do {
    const page: ToolCallPage = await getJson(TOOL_CALLS, { ...parameters, limit: PAGE, cursor }, signal);
    calls.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return calls;
}
