/**
 * A stream of changes that resumes where it was, also after a restart of the server. A hidden page lets go
 * of its stream, since a browser has few connections to give, and asks for what it missed when it is seen again.
 *
 * It is read with `fetch`: the browser's own EventSource cannot send the page's key.
 */

import { useEffect, useRef, useState } from "react";
import { fetchSigned } from "./access";

/** What a stream reports: changes, and that the page must load everything again. */
export interface StreamReader<Change> {
  onChange: (change: Change) => void;
  /** With the change sequence number from which changes are reported. */
  onResync: (sequence: number) => void;
  /** What is followed may be there no more: the stream says so, or is refused. */
  onGone?: () => void;
}

/** Milliseconds until a stream that was refused or broke off is requested again. */
export const AGAIN = 2_000;

/** Milliseconds after which a stream that does not begin is closed and requested again; doubled each time. */
export const PATIENCE = 5_000;

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
  private running: AbortController | null = null;
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
    if (this.running) return;
    const own = new AbortController();
    this.running = own;
    this.timer = setTimeout(() => this.reopen(), this.patience);
    this.follow(own.signal);
  }

  /** Reads the stream to its end, and requests it again unless it was let go of. */
  private async follow(signal: AbortSignal): Promise<void> {
    let refused = false;
    try {
      const address = this.last === null ? this.path : `${this.path}?after=${this.last}`;
      const response = await fetchSigned(address, { signal, cache: "no-store" });
      refused = !response.ok;
      if (response.ok && response.body) {
        for await (const event of readEvents(response.body)) this.take(event);
      }
    } catch {
      // The server is away, or the stream was let go of.
    }
    if (signal.aborted) return;
    this.onUp(false);
    if (refused) this.reader.onGone?.();
    this.close();
    this.timer = setTimeout(() => this.open(), AGAIN);
  }

  private take({ type, id, data }: ServerSentEvent): void {
    if (type === this.kind) {
      this.last = id;
      this.reader.onChange(JSON.parse(data) as Change);
    } else if (type === "ready") {
      clearTimeout(this.timer);
      this.patience = PATIENCE;
      // The first time: what was written between the reading of what is shown and now.
      if (this.last === null) this.reader.onResync(Number(id));
      this.last = id;
      this.onUp(true);
    } else if (type === "resync") {
      this.last = id;
      this.reader.onResync(Number(id));
    } else if (type === "gone") {
      this.reader.onGone?.();
    }
  }

  private reopen(): void {
    this.patience *= 2;
    this.close();
    this.open();
  }

  close(): void {
    clearTimeout(this.timer);
    this.running?.abort();
    this.running = null;
  }
}

interface ServerSentEvent {
  type: string;
  id: string;
  data: string;
}

/** The events of a stream as they come, with what each one sets; comments keep the connection and say nothing. */
async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let fields: Record<string, string> = {};
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    const lines = (rest + decoder.decode(read.value, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line) {
        const colon = line.indexOf(":");
        fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, "");
      } else {
        const { event, id = "", data = "" } = fields;
        fields = {};
        if (event) yield { type: event, id, data };
      }
    }
  }
}
