/** Light, dark, or the system's setting. Remembered on this machine; theme.js applies it before the first paint. */

import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark";

const SYSTEM_DARK = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, currentTheme);
}

export function toggleTheme(): void {
  const theme = currentTheme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // Forbidden storage: the choice lasts as long as the page.
  }
  for (const listener of listeners) listener();
}

function currentTheme(): Theme {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return SYSTEM_DARK.matches ? "dark" : "light";
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  SYSTEM_DARK.addEventListener("change", listener);
  return () => {
    listeners.delete(listener);
    SYSTEM_DARK.removeEventListener("change", listener);
  };
}
