/**
 * A stream of changes that resumes where it was, also after a restart of the server. A hidden page lets go
 * of its stream, since a browser has few connections to give, and asks for what it missed when it is seen again.
 */

import { useEffect, useRef, useState } from "react";

/** What a stream reports: changes, and that the page must load everything again. */
export interface StreamReader<Change> {
  onChange: (change: Change) => void;
  /** With the change sequence number from which changes are reported. */
  onResync: (sequence: number) => void;
  /** What is followed may be there no more: the stream says so, or is refused. */
  onGone?: () => void;
}

/** Milliseconds until a refused stream is requested again; one that broke off reconnects by itself. */
const AGAIN = 2_000;

/** Milliseconds after which a stream that does not begin is closed and requested again; doubled each time. */
const PATIENCE = 5_000;

/** Whether the stream at `path` is up, whose changes are events of the type `kind`. */
export function useEventStream<Change>(
  path: string,
  kind: string,
  wanted: boolean,
  reader: StreamReader<Change>,
): boolean {
  const newest = useRef(reader);
  newest.current = reader;
  const [up, setUp] = useState(false);

  useEffect(() => {
    if (!wanted) return;
    const stream = new Stream<Change>(
      path,
      kind,
      {
        onChange: (change) => newest.current.onChange(change),
        onResync: (sequence) => newest.current.onResync(sequence),
        onGone: () => newest.current.onGone?.(),
      },
      setUp,
    );
    const follow = () => (document.hidden ? stream.close() : stream.open());
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      stream.close();
    };
  }, [path, kind, wanted]);

  return up;
}

class Stream<Change> {
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private patience = PATIENCE;
  /** The last change sequence number that was reported; null before the first. */
  private last: string | null = null;

  constructor(
    private readonly path: string,
    private readonly kind: string,
    private readonly reader: StreamReader<Change>,
    private readonly onUp: (up: boolean) => void,
  ) {}

  open(): void {
    if (this.source) return;
    const source = new EventSource(this.last === null ? this.path : `${this.path}?after=${this.last}`);
    this.source = source;
    this.timer = setTimeout(() => this.reopen(), this.patience);
    source.addEventListener("ready", (event) => {
      clearTimeout(this.timer);
      this.patience = PATIENCE;
      // The first time: what was written between the reading of what is shown and now.
      if (this.last === null) this.reader.onResync(Number(event.lastEventId));
      this.last = event.lastEventId;
      this.onUp(true);
    });
    source.addEventListener(this.kind, (event: MessageEvent<string>) => {
      this.last = event.lastEventId;
      this.reader.onChange(JSON.parse(event.data) as Change);
    });
    source.addEventListener("resync", (event) => {
      this.last = event.lastEventId;
      this.reader.onResync(Number(event.lastEventId));
    });
    source.addEventListener("gone", () => this.reader.onGone?.());
    source.onerror = () => {
      this.onUp(false);
      if (source.readyState !== EventSource.CLOSED) return;
      this.reader.onGone?.();
      this.close();
      this.timer = setTimeout(() => this.open(), AGAIN);
    };
  }

  private reopen(): void {
    this.patience *= 2;
    this.close();
    this.open();
  }

  close(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}
