/**
 * Waiting for what is drawn later, unless the reader goes elsewhere. Time counts and not frames: a busy machine draws few
 * of them.
 */

/** How long something may take until it is drawn, in milliseconds: rows are measured, a part opens, its text is loaded. */
const PATIENCE = 5_000;

/** What readers do to scroll by hand. */
const POINTING = ["wheel", "touchmove", "pointerdown"] as const;
const ACTING = [...POINTING, "keydown"] as const;

function onEvents(names: readonly string[], listener: () => void): () => void {
  for (const name of names) addEventListener(name, listener, { capture: true, passive: true });
  return () => {
    for (const name of names) removeEventListener(name, listener, { capture: true });
  };
}

/** Calls the listener whenever the reader scrolls, clicks or presses a key. Returns a function that ends it. */
export function onReaderAction(listener: () => void): () => void {
  return onEvents(ACTING, listener);
}

/**
 * Calls `attempt` now and in every frame until it returns true, 5 seconds are over or the reader scrolls. Returns a
 * function that ends it earlier.
 */
export function retryEachFrame(attempt: () => boolean): () => void {
  const end = performance.now() + PATIENCE;
  let frame = 0;
  const cancel = () => {
    cancelAnimationFrame(frame);
    stopListening();
  };
  const step = () => {
    // The last attempt comes after the time is over: a page that drew nothing meanwhile still has one.
    const late = performance.now() > end;
    if (attempt() || late) cancel();
    else frame = requestAnimationFrame(step);
  };
  const stopListening = onEvents(POINTING, cancel);
  step();
  return cancel;
}
