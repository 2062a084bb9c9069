/** What is open and what is folded. It is kept outside the list, whose rows are unmounted while one scrolls. */

import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useState,
  useSyncExternalStore,
} from "react";

export class Disclosure {
  private everything: boolean | null = null;
  private readonly own = new Map<string, boolean>();
  private readonly listeners = new Set<() => void>();

  isOpen(id: string, byDefault: boolean): boolean {
    return this.own.get(id) ?? this.everything ?? byDefault;
  }

  /** For what `setAll` leaves alone: there is too much of it, and it is not part of the conversation. */
  isOpenItself(id: string): boolean {
    return this.own.get(id) ?? false;
  }

  set(id: string, open: boolean): void {
    this.own.set(id, open);
    this.notify();
  }

  /** Open or fold everything, now and as it is loaded; null: each as it is by itself. */
  setAll(open: boolean | null): void {
    this.everything = open;
    this.own.clear();
    this.notify();
  }

  /** A text that changes whenever something whose id begins so is opened or folded. */
  signature(prefix: string): string {
    const own = [...this.own].filter(([id]) => id.startsWith(prefix));
    return `${this.everything} ${own.join(" ")}`;
  }

  /** The last value of `setAll`. */
  all(): boolean | null {
    return this.everything;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}

const DisclosureContext = createContext(new Disclosure());

export function DisclosureProvider({ children }: { children: ReactNode }) {
  const [disclosure] = useState(() => new Disclosure());
  return <DisclosureContext value={disclosure}>{children}</DisclosureContext>;
}

export function useDisclosures(): Disclosure {
  return useContext(DisclosureContext);
}

export function useOwnDisclosure(id: string): [open: boolean, toggle: () => void] {
  const disclosure = useDisclosures();
  const open = useSyncExternalStore(disclosure.subscribe, () => disclosure.isOpenItself(id));
  const toggle = useCallback(() => disclosure.set(id, !disclosure.isOpenItself(id)), [disclosure, id]);
  return [open, toggle];
}

/** Whether everything is open (true) or folded (false); null: each as it is by itself. */
export function useAll(): boolean | null {
  const disclosure = useDisclosures();
  return useSyncExternalStore(disclosure.subscribe, () => disclosure.all());
}

/** Whether folded calls show a glance of themselves. */
export function useGlances(): boolean {
  return useAll() !== false;
}

export function useDisclosure(id: string, byDefault = false): [open: boolean, toggle: () => void] {
  const disclosure = useDisclosures();
  const open = useSyncExternalStore(disclosure.subscribe, () => disclosure.isOpen(id, byDefault));
  const toggle = useCallback(
    () => disclosure.set(id, !disclosure.isOpen(id, byDefault)),
    [disclosure, id, byDefault],
  );
  return [open, toggle];
}

const NEXT = new Map<boolean | null, { label: string; all: boolean | null }>([
  [null, { label: "Open all", all: true }],
  [true, { label: "Fold all", all: false }],
  [false, { label: "At a glance", all: null }],
]);

/** What pressing it once more would do. */
export function nextAll(all: boolean | null): { label: string; all: boolean | null } {
  return NEXT.get(all) ?? { label: "At a glance", all: null };
}
