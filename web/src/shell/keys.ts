/** Keyboard: shortcuts while no field has the focus, and moving through lists of links and buttons. */

import { type RefObject, useEffect, useLayoutEffect } from "react";

type Handler = (event: KeyboardEvent) => void;

/** Calls the handler of a pressed key ("j", "Escape", "Ctrl+k"); plain keys do nothing while the user is typing. */
export function useKeys(handlers: Record<string, Handler>): void {
  // Before the next key press can come: it is for the page as it is drawn now.
  useLayoutEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const handler = handlers[nameOf(event)];
      if (!handler || event.defaultPrevented || isCovered()) return;
      const plain = !event.ctrlKey && !event.metaKey;
      if (plain && event.key !== "Escape" && isTyping(event.target)) return;
      handler(event);
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [handlers]);
}

/** j/k and the arrows move the focus over everything marked `data-item` inside the list; Enter is the browser's. */
export function useListKeys(list: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const step = STEPS[nameOf(event)];
      if (!step || event.defaultPrevented || isTyping(event.target) || isCovered()) return;
      const items = [...(list.current?.querySelectorAll<HTMLElement>("[data-item]") ?? [])];
      const current = items.findIndex((item) => item.contains(document.activeElement));
      const next = items[current === -1 ? 0 : current + step];
      if (!next) return;
      event.preventDefault();
      next.focus();
      next.scrollIntoView({ block: "nearest" });
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [list]);
}

/** A plain key does what the button marked with it (`data-key`) does, in the item of the list that has the focus. */
export function useItemKeys(list: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || isTyping(event.target) || isCovered()) return;
      const item = list.current?.contains(document.activeElement) && document.activeElement?.closest("li");
      if (!item) return;
      const button = item.querySelector<HTMLElement>(`[data-key="${CSS.escape(nameOf(event))}"]`);
      if (!button) return;
      event.preventDefault();
      button.click();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [list]);
}

const STEPS: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

function nameOf(event: KeyboardEvent): string {
  // On many keyboards, brackets are typed with AltGr, which some systems report as Ctrl and Alt.
  if (event.getModifierState("AltGraph")) return event.key;
  const modifier = event.ctrlKey || event.metaKey ? "Ctrl+" : event.altKey ? "Alt+" : "";
  return modifier + event.key;
}

/** Where a letter is a letter. A slider and a box to tick take none. */
const TEXT_FIELDS = "input:not([type=range], [type=checkbox]), select, textarea, [contenteditable]";

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches(TEXT_FIELDS);
}

/** Whether something lies above the page, and the keys are for that. */
function isCovered(): boolean {
  return document.querySelector("dialog[open], :popover-open") !== null;
}
