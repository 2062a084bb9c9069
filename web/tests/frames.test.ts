// @vitest-environment happy-dom

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { retryEachFrame } from "@/session/timeline/frames";

/** Draws one frame after this many milliseconds. */
let draw: (milliseconds: number) => void;

beforeEach(() => {
  let now = 0;
  let next: FrameRequestCallback | null = null;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  vi.stubGlobal("requestAnimationFrame", (callback: FrameRequestCallback) => {
    next = callback;
    return 1;
  });
  vi.stubGlobal("cancelAnimationFrame", () => {
    next = null;
  });
  draw = (milliseconds) => {
    now += milliseconds;
    const callback = next;
    next = null;
    callback?.(now);
  };
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

it("tries until it succeeds, however many frames are drawn meanwhile", () => {
  let drawn = false;
  const attempt = vi.fn(() => drawn);
  retryEachFrame(attempt);
  for (let frame = 0; frame < 200; frame += 1) draw(16);
  drawn = true;
  draw(16);
  expect(attempt).toHaveBeenCalledTimes(202);
  draw(16);
  expect(attempt).toHaveBeenCalledTimes(202);
});

it("tries once more where a single frame took longer than it waits", () => {
  const results = [false, true];
  const attempt = vi.fn(() => results.shift() ?? true);
  retryEachFrame(attempt);
  draw(60_000);
  expect(attempt).toHaveBeenCalledTimes(2);
});

it("gives up after five seconds, when it is cancelled, and when the reader scrolls", () => {
  const late = vi.fn(() => false);
  retryEachFrame(late);
  draw(5_001);
  draw(16);
  expect(late).toHaveBeenCalledTimes(2);

  const cancelled = vi.fn(() => false);
  retryEachFrame(cancelled)();
  draw(16);
  expect(cancelled).toHaveBeenCalledTimes(1);

  const left = vi.fn(() => false);
  retryEachFrame(left);
  dispatchEvent(new Event("wheel"));
  draw(16);
  expect(left).toHaveBeenCalledTimes(1);
});
