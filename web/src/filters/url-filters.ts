/** Filters that live in the address, so that a view can be linked, reloaded and gone back to. */

import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";

export type Filters<Name extends string> = Record<Name, string>;

export function useUrlFilters<Name extends string>(
  names: readonly Name[],
): [filters: Filters<Name>, change: (changes: Partial<Filters<Name>>) => void] {
  const [parameters, setParameters] = useSearchParams();
  const filters = useMemo(
    () => Object.fromEntries(names.map((name) => [name, parameters.get(name) ?? ""])) as Filters<Name>,
    [names, parameters],
  );
  const change = useCallback(
    (changes: Partial<Filters<Name>>) => {
      setParameters(
        (current) => {
          const next = new URLSearchParams(current);
          for (const [name, value] of Object.entries<string | undefined>(changes)) {
            if (value) next.set(name, value);
            else next.delete(name);
          }
          return next;
        },
        { replace: true },
      );
    },
    [setParameters],
  );
  return [filters, change];
}

/** How many of these filters are set. */
export function countSet<Name extends string>(filters: Filters<Name>, names: readonly Name[]): number {
  return names.filter((name) => filters[name] !== "").length;
}
