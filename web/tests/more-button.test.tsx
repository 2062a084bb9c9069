// @vitest-environment happy-dom

import { render } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { MoreButton } from "@/design/more-button";

afterEach(() => vi.unstubAllGlobals());

/** Says at once that whatever it observes is in sight, and never again. */
class InSight {
  constructor(private readonly callback: IntersectionObserverCallback) {}
  observe() {
    const entries = [{ isIntersecting: true }] as IntersectionObserverEntry[];
    this.callback(entries, this as unknown as IntersectionObserver);
  }
  disconnect() {}
}

it("a next page that another fetch has cancelled is asked for again", () => {
  vi.stubGlobal("IntersectionObserver", InSight);
  const fetchNextPage = vi.fn();
  const pages = { fetchNextPage, isFetchingNextPage: false, isError: false };
  const { rerender } = render(<MoreButton pages={{ ...pages, isFetching: false }} />);
  expect(fetchNextPage).toHaveBeenCalledTimes(1);
  rerender(<MoreButton pages={{ ...pages, isFetching: true }} />);
  expect(fetchNextPage).toHaveBeenCalledTimes(1);
  rerender(<MoreButton pages={{ ...pages, isFetching: false }} />);
  expect(fetchNextPage).toHaveBeenCalledTimes(2);
});

it("after a failure only the button asks for the next page again", () => {
  vi.stubGlobal("IntersectionObserver", InSight);
  const fetchNextPage = vi.fn();
  const pages = { fetchNextPage, isFetchingNextPage: false, isError: false };
  const { rerender, getByRole } = render(<MoreButton pages={{ ...pages, isFetching: false }} />);
  rerender(<MoreButton pages={{ ...pages, isFetching: true }} />);
  rerender(<MoreButton pages={{ ...pages, isFetching: false, isError: true }} />);
  expect(fetchNextPage).toHaveBeenCalledTimes(1);
  getByRole("button").click();
  expect(fetchNextPage).toHaveBeenCalledTimes(2);
});
