/** Keys for what is in sight: from entry to entry, opening and folding, and down to the raw records. */

import { type RefObject, useMemo } from "react";
import type { VirtualizerHandle } from "virtua";
import { sessionPage } from "@/api/paths";
import { type Disclosure, nextAll, useDisclosures } from "@/session/disclosure";
import { detailsId } from "@/session/message/message-frame";
import { disclosureId } from "@/session/message/part-frame";
import { rawId } from "@/session/message/raw-records";
import { useSessionContext } from "@/session/session-context";
import { useKeys } from "@/shell/keys";
import { retryEachFrame } from "./frames";
import { entryAt, flash } from "./scroll";

/** j and k move, Enter opens and folds what is in the entry, x does so everywhere, r shows raw records, c copies a link. */
export function useEntryKeys(
  scroller: RefObject<HTMLElement | null>,
  list: RefObject<VirtualizerHandle | null>,
  count: number,
): void {
  const disclosures = useDisclosures();
  const { sessionId } = useSessionContext();
  const handlers = useMemo(() => {
    let stopFocusing = () => {};
    const move = (step: number) => (event: KeyboardEvent) => {
      const focused = document.activeElement?.closest<HTMLElement>(".entry")?.dataset.index;
      const top = list.current?.findItemIndex((list.current?.scrollOffset ?? 0) + 1) ?? 0;
      const next = focused === undefined ? top : Math.min(Math.max(Number(focused) + step, 0), count - 1);
      event.preventDefault();
      list.current?.scrollToIndex(next, { align: "nearest" });
      stopFocusing();
      stopFocusing = retryEachFrame(() => {
        const entry = entryAt(scroller.current, next);
        entry?.focus({ preventScroll: true });
        // An entry that is far away is not visible until the list has measured it, and takes no focus before.
        return entry !== null && document.activeElement === entry;
      });
    };
    return {
      j: move(1),
      k: move(-1),
      x: () => disclosures.setAll(nextAll(disclosures.all()).all),
      Enter: toggleFocused,
      r: () => showRaw(disclosures),
      c: () => copyLink(sessionId),
    };
  }, [scroller, list, count, disclosures, sessionId]);
  useKeys(handlers);
}

/** Opens the raw records of what has the focus, or is under the pointer: of an event, a call, else of a message. */
function showRaw(disclosures: Disclosure): void {
  const target = focusedOrHovered();
  const event = target?.closest<HTMLElement>("[data-event]")?.dataset.event;
  if (event) disclosures.set(rawId(event), !disclosures.isOpenItself(rawId(event)));
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

/** The link to what has the focus, or is under the pointer: to a part, else to its message. It flashes when it is copied. */
async function copyLink(sessionId: string): Promise<void> {
  const target = focusedOrHovered();
  const message = target?.closest<HTMLElement>("[data-message]");
  if (!message?.dataset.message) return;
  const part = target?.closest<HTMLElement>("[data-part]");
  const index = part ? Number(part.dataset.part) : null;
  await navigator.clipboard.writeText(
    location.origin + sessionPage(sessionId, message.dataset.message, index),
  );
  flash(part ?? message);
}

/** What has records of its own. */
const RECORDED = "[data-message], [data-event]";

function focusedOrHovered(): Element | null {
  const focused = document.activeElement?.closest(RECORDED);
  if (focused) return document.activeElement;
  const entry = document.activeElement?.closest(".entry");
  return entry?.querySelector(RECORDED) ?? [...document.querySelectorAll(".entry :hover")].at(-1) ?? null;
}

function toggleFocused(): void {
  if (!document.activeElement?.matches(".entry")) return;
  for (const toggle of document.activeElement.querySelectorAll<HTMLElement>("[data-toggle]")) toggle.click();
}
