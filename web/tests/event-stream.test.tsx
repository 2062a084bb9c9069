// @vitest-environment happy-dom

import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AGAIN, PATIENCE, useEventStream } from "@/api/event-stream";

/** Requests for a stream, each with what lets the test write to it. */
interface Asked {
  address: string;
  signal: AbortSignal;
  send: (text: string) => Promise<void>;
  end: () => Promise<void>;
}

const asked: Asked[] = [];
let status = 200;

beforeEach(() => {
  vi.useFakeTimers();
  asked.length = 0;
  status = 200;
  vi.stubGlobal("fetch", async (address: string, { signal }: { signal: AbortSignal }) => {
    if (status !== 200) return Response.json({}, { status });
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start(own) {
        controller = own;
      },
    });
    signal.addEventListener("abort", () => controller?.error(signal.reason));
    const send = (text: string) =>
      act(async () => {
        controller?.enqueue(new TextEncoder().encode(text));
        await vi.advanceTimersByTimeAsync(0);
      });
    const end = () =>
      act(async () => {
        controller?.close();
        await vi.advanceTimersByTimeAsync(0);
      });
    asked.push({ address, signal, send, end });
    return { ok: true, status: 200, body };
  });
});

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  Object.defineProperty(document, "hidden", { value: false, configurable: true });
});

const READY = 'id: 7\nevent: ready\ndata: {"sequence":7}\n\n';
const CHANGE = 'id: 8\nevent: session\ndata: {"sequence":8,"text":"Grüße"}\n\n';

async function follow() {
  const reader = { onChange: vi.fn(), onResync: vi.fn(), onGone: vi.fn() };
  const hook = renderHook(() => useEventStream("/api/events", "session", true, reader));
  await act(async () => vi.advanceTimersByTimeAsync(0));
  return { reader, hook };
}

const wait = (milliseconds: number) => act(async () => vi.advanceTimersByTimeAsync(milliseconds));

const stream = (index = -1): Asked => asked.at(index) as Asked;

describe("a stream of changes", () => {
  it("tells where it begins, and then every change", async () => {
    const { reader, hook } = await follow();
    expect(hook.result.current).toBe(false);
    await stream().send(READY);
    expect(hook.result.current).toBe(true);
    expect(reader.onResync).toHaveBeenCalledExactlyOnceWith(7);
    await stream().send(`: \n\n${CHANGE}`);
    expect(reader.onChange).toHaveBeenCalledExactlyOnceWith({ sequence: 8, text: "Grüße" });
    await stream().send('id: 9\nevent: resync\ndata: {"sequence":9}\n\nid: 9\nevent: gone\ndata: {}\n\n');
    expect(reader.onResync).toHaveBeenLastCalledWith(9);
    expect(reader.onGone).toHaveBeenCalledOnce();
  });

  it("reads events whose bytes come in any pieces", async () => {
    const { reader } = await follow();
    for (const character of READY + CHANGE) await stream().send(character);
    expect(reader.onChange).toHaveBeenCalledExactlyOnceWith({ sequence: 8, text: "Grüße" });
  });

  it("goes on behind the last change after it has broken off, and tells no place twice", async () => {
    const { reader, hook } = await follow();
    await stream().send(READY + CHANGE);
    await stream().end();
    expect(hook.result.current).toBe(false);
    expect(asked).toHaveLength(1);
    await wait(AGAIN);
    expect(stream().address).toBe("/api/events?after=8");
    await stream().send(READY.replaceAll("7", "8"));
    expect(hook.result.current).toBe(true);
    expect(reader.onResync).toHaveBeenCalledOnce();
    expect(reader.onGone).not.toHaveBeenCalled();
  });

  it("is requested again where it is refused, and says that what it follows may be gone", async () => {
    status = 404;
    const { reader } = await follow();
    expect(reader.onGone).toHaveBeenCalledOnce();
    status = 200;
    await wait(AGAIN);
    expect(asked).toHaveLength(1);
  });

  it("is given up where it does not begin, each time later", async () => {
    await follow();
    await wait(PATIENCE);
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    await wait(PATIENCE);
    expect(asked).toHaveLength(2);
    await wait(PATIENCE);
    expect(asked).toHaveLength(3);
  });

  it("is let go of while the page is hidden, and when nobody follows it any more", async () => {
    const { hook } = await follow();
    await stream().send(READY);
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    act(() => void document.dispatchEvent(new Event("visibilitychange")));
    expect(stream().signal.aborted).toBe(true);
    await wait(10 * AGAIN);
    expect(asked).toHaveLength(1);
    Object.defineProperty(document, "hidden", { value: false, configurable: true });
    act(() => void document.dispatchEvent(new Event("visibilitychange")));
    await wait(0);
    expect(stream().address).toBe("/api/events?after=7");
    hook.unmount();
    expect(stream().signal.aborted).toBe(true);
    await wait(10 * AGAIN);
    expect(asked).toHaveLength(2);
  });
});
