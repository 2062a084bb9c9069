/** Keys for what is in sight: from entry to entry, opening and folding, and down to the raw records. */

import { type RefObject, useMemo } from "react";
import type { VirtualizerHandle } from "virtua";
import { useKeys } from "@/shell/keys";
import { nextAll } from "./all-button";
import { type Disclosure, useDisclosures } from "./disclosure";
import { entryAt } from "./entry-element";
import { detailsId, rawId } from "./message-details";
import { disclosureId } from "./parts/part-frame";

/** j and k move, Enter opens and folds what is in the entry, x does so everywhere, r shows raw records. */
export function useEntryKeys(
  scroller: RefObject<HTMLElement | null>,
  list: RefObject<VirtualizerHandle | null>,
  count: number,
): void {
  const disclosures = useDisclosures();
  const handlers = useMemo(() => {
    const move = (step: number) => (event: KeyboardEvent) => {
      const focused = document.activeElement?.closest<HTMLElement>(".entry")?.dataset.index;
      const top = list.current?.findItemIndex((list.current?.scrollOffset ?? 0) + 1) ?? 0;
      const next = focused === undefined ? top : Math.min(Math.max(Number(focused) + step, 0), count - 1);
      event.preventDefault();
      list.current?.scrollToIndex(next, { align: "nearest" });
      requestAnimationFrame(() => entryAt(scroller.current, next)?.focus({ preventScroll: true }));
    };
    return {
      j: move(1),
      k: move(-1),
      x: () => disclosures.setAll(nextAll(disclosures.all()).all),
      Enter: toggleFocused,
      r: () => showRaw(disclosures),
    };
  }, [scroller, list, count, disclosures]);
  useKeys(handlers);
}

/** Opens the raw records of what has the focus, or is under the pointer: of a call, else of its message. */
function showRaw(disclosures: Disclosure): void {
  const target = focusedOrHovered();
  const message = target?.closest<HTMLElement>("[data-message]")?.dataset.message;
  if (!message) return;
  const call = target?.closest<HTMLElement>("[data-call]")?.dataset.part;
  if (call === undefined) {
    const open = disclosures.isOpenItself(rawId(message)) && disclosures.isOpenItself(detailsId(message));
    disclosures.set(detailsId(message), !open);
    disclosures.set(rawId(message), !open);
    return;
  }
  const raw = rawId(message, Number(call));
  const open = disclosures.isOpenItself(raw);
  if (!open) disclosures.set(disclosureId({ messageId: message, index: Number(call) }), true);
  disclosures.set(raw, !open);
}

function focusedOrHovered(): Element | null {
  const focused = document.activeElement?.closest("[data-message]");
  if (focused) return document.activeElement;
  const entry = document.activeElement?.closest(".entry");
  return (
    entry?.querySelector("[data-message]") ?? [...document.querySelectorAll(".entry :hover")].at(-1) ?? null
  );
}

function toggleFocused(): void {
  if (!document.activeElement?.matches(".entry")) return;
  for (const toggle of document.activeElement.querySelectorAll<HTMLElement>("[data-toggle]")) toggle.click();
}
