// @vitest-environment happy-dom

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { SessionResponse, SessionUpdate } from "@/api/types";
import { applyUpdate, renewSession, useSession } from "@/session/page/session-query";
import { session } from "./samples";

/** Lets go of an answer to the oldest request that waits for one. */
let waiting: ((answer: Response) => void)[] = [];

beforeEach(() => {
  waiting = [];
  vi.stubGlobal("fetch", () => new Promise<Response>((resolve) => waiting.push(resolve)));
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function answer(title: string, change_sequence: number): SessionResponse {
  return {
    session: session({ title }),
    children: [],
    forks: [],
    change_sequence,
  } as unknown as SessionResponse;
}

function update(title: string, sequence: number): SessionUpdate {
  return { session: session({ title }), sequence } as SessionUpdate;
}

function open() {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={queries}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(() => useSession("one"), { wrapper });
  const arrive = async (title: string, sequence: number) => {
    await waitFor(() => expect(waiting).not.toHaveLength(0));
    await act(async () => waiting.shift()?.(Response.json(answer(title, sequence))));
  };
  return { queries, title: () => result.current.data?.session.title, arrive };
}

/** R-C20: the stream and the answers to requests have no order among each other. */
it("keeps a change that was reported while an older answer was on its way", async () => {
  const { queries, title, arrive } = open();
  await arrive("before", 3);
  act(() => void renewSession(queries, "one", 5));
  act(() => applyUpdate(queries, "one", update("changed", 7)));
  await arrive("older", 5);
  await waitFor(() => expect(queries.isFetching()).toBe(0));
  expect(title()).toBe("changed");
});

it("keeps a change that was reported before the first answer", async () => {
  const { queries, title, arrive } = open();
  act(() => applyUpdate(queries, "one", update("changed", 7)));
  await arrive("older", 5);
  await waitFor(() => expect(title()).toBe("changed"));
});

it("shows an answer that is newer than the last change", async () => {
  const { queries, title, arrive } = open();
  await arrive("before", 3);
  act(() => applyUpdate(queries, "one", update("changed", 7)));
  act(() => void renewSession(queries, "one", 9));
  await arrive("newest", 9);
  await waitFor(() => expect(title()).toBe("newest"));
});

it("shows a store that was made anew, which counts from the start", async () => {
  const { queries, title, arrive } = open();
  await arrive("before", 900);
  act(() => applyUpdate(queries, "one", update("changed", 907)));
  act(() => void renewSession(queries, "one", 2));
  act(() => void queries.invalidateQueries({ queryKey: ["session", "one"] }));
  await arrive("made anew", 2);
  await waitFor(() => expect(title()).toBe("made anew"));
});
