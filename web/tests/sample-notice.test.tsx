// @vitest-environment happy-dom

import { cleanup, render } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import type { StatusResponse } from "@/api/types";
import { SampleNotice } from "@/shell/status-line";

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const status = (sample: boolean) => ({ sample }) as StatusResponse;

it("loads the page again once the sample has given way", () => {
  const assign = vi.spyOn(location, "assign").mockImplementation(() => undefined);
  const { rerender, container } = render(<SampleNotice status={null} />);
  rerender(<SampleNotice status={status(true)} />);
  expect(container.textContent).toContain("Sample.");
  rerender(<SampleNotice status={null} />);
  expect(assign).not.toHaveBeenCalled();
  rerender(<SampleNotice status={status(false)} />);
  expect(assign).toHaveBeenCalledExactlyOnceWith("/");
});

it("stays on the page where there never was a sample", () => {
  const assign = vi.spyOn(location, "assign").mockImplementation(() => undefined);
  const { rerender } = render(<SampleNotice status={status(false)} />);
  rerender(<SampleNotice status={status(false)} />);
  expect(assign).not.toHaveBeenCalled();
});
