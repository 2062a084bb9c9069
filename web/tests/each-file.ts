/**
 * What files of tests do not share although they share a process: the modules of the page, which remember things, and
 * what each test leaves in the document.
 */

import { cleanup } from "@testing-library/react";
import { afterEach, vi } from "vitest";

vi.resetModules();

afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  globalThis.history?.replaceState(null, "", "/");
});
