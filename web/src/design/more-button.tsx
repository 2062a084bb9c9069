/** Loads the next page when it comes into sight, or when it is pressed. */

import { useEffect, useRef } from "react";

/** What the button needs of an infinite query. */
interface Pages {
  fetchNextPage: () => unknown;
  isFetchingNextPage: boolean;
  isFetching: boolean;
  isError: boolean;
}

export function MoreButton({ pages }: { pages: Pages }) {
  const { isFetching, isFetchingNextPage, isError } = pages;
  const button = useRef<HTMLButtonElement>(null);
  const latest = useRef(pages);
  latest.current = pages;
  // Looks anew after any fetch: pages that are read again cancel a next page that was asked for at the same moment.
  // After a failure only the button asks again: else a server that refuses would be asked without end.
  useEffect(() => {
    const element = button.current;
    if (!element || isFetching || isError) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) latest.current.fetchNextPage();
      },
      { rootMargin: "600px" },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [isFetching, isError]);
  return (
    <button
      type="button"
      className="button more"
      ref={button}
      onClick={() => pages.fetchNextPage()}
      disabled={isFetchingNextPage}
    >
      {isFetchingNextPage ? "Loading…" : "Load more"}
    </button>
  );
}
