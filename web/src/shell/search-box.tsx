/** The search that is always at hand: "/", a few words, Enter. */

import { type FormEvent, useMemo, useRef } from "react";
import { useLocation } from "wouter";
import { Icon } from "@/design/icon";
import { useParameters } from "@/filters/url-filters";
import { useKeys } from "./keys";

const ID = "search-everything";

export function focusSearch(): void {
  const input = document.getElementById(ID);
  if (input instanceof HTMLInputElement) input.select();
}

export function SearchBox() {
  const [location, navigate] = useLocation();
  const parameters = useParameters();
  const input = useRef<HTMLInputElement>(null);
  const query = location === "/search" ? (parameters.get("q") ?? "") : "";
  const keys = useMemo(() => {
    const focus = (event: KeyboardEvent) => {
      event.preventDefault();
      focusSearch();
    };
    return { "/": focus };
  }, []);
  useKeys(keys);

  const search = (event: FormEvent) => {
    event.preventDefault();
    const wanted = input.current?.value.trim();
    if (!wanted) return;
    const next = new URLSearchParams(location === "/search" ? parameters : {});
    next.set("q", wanted);
    input.current?.blur();
    navigate(`/search?${next}`);
  };
  return (
    <search className="top-search">
      <form onSubmit={search}>
        <Icon name="search" size={14} />
        <input
          key={query}
          ref={input}
          id={ID}
          type="search"
          name="q"
          aria-label="Search everything"
          placeholder="Search"
          autoComplete="off"
          spellCheck={false}
          defaultValue={query}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
        <kbd>/</kbd>
      </form>
    </search>
  );
}
