/** Filters that live in the address, so that a view can be linked, reloaded and gone back to. */

import { useCallback, useMemo } from "react";
import { navigate, useSearch } from "wouter/use-browser-location";

export type Filters<Name extends string> = Record<Name, string>;

/** The query string of the address. Not wouter's own hook, which decodes twice and turns a `%41` into an `A`. */
export function useParameters(): URLSearchParams {
  const search = useSearch();
  return useMemo(() => new URLSearchParams(search), [search]);
}

export function useUrlFilters<Name extends string>(
  names: readonly Name[],
): [filters: Filters<Name>, change: (changes: Partial<Filters<Name>>) => void] {
  const parameters = useParameters();
  const filters = useMemo(
    () => Object.fromEntries(names.map((name) => [name, parameters.get(name) ?? ""])) as Filters<Name>,
    [names, parameters],
  );
  const change = useCallback((changes: Partial<Filters<Name>>) => {
    const next = new URLSearchParams(window.location.search);
    for (const [name, value] of Object.entries<string | undefined>(changes)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    navigate(next.size > 0 ? `?${next}` : window.location.pathname, { replace: true });
  }, []);
  return [filters, change];
}

/** How many of these filters are set. */
export function countSet<Name extends string>(filters: Filters<Name>, names: readonly Name[]): number {
  return names.filter((name) => filters[name] !== "").length;
}
