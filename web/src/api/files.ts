/**
 * Bytes that a browser shows or saves. An address alone does not get them, since a request needs the page's key: they
 * are loaded, and shown under an address of their own for as long as that is of use.
 */

import { useEffect, useState } from "react";
import { request } from "./client";

/** Milliseconds after which the browser has taken what it saves or opens. */
const TAKEN = 60_000;

/** An address within this page of the bytes at a path, while the component lives; null until they are loaded. */
export function useObjectUrl(path: string): string | null {
  const [shown, setShown] = useState<{ path: string; url: string } | null>(null);
  useEffect(() => {
    const own = new AbortController();
    let url: string | null = null;
    const load = async () => {
      const blob = await (await request(path, { signal: own.signal })).blob();
      if (own.signal.aborted) return;
      url = URL.createObjectURL(blob);
      setShown({ path, url });
    };
    load().catch(() => undefined); // what cannot be loaded keeps its name
    return () => {
      own.abort();
      if (url) URL.revokeObjectURL(url);
    };
  }, [path]);
  return shown?.path === path ? shown.url : null;
}

/** Saves the bytes at a path under the name that the server gives them. */
export async function download(path: string): Promise<void> {
  const response = await request(path);
  const link = document.createElement("a");
  link.href = lastingUrl(await response.blob(), "application/octet-stream");
  link.download = fileNameOf(response.headers.get("content-disposition")) ?? "";
  link.click();
}

/** Shows the bytes at a path as text, in a window of their own. */
export async function openText(path: string): Promise<void> {
  // At once: later the browser would take it for a pop-up.
  const opened = window.open("", "_blank");
  try {
    const response = await request(path);
    opened?.location.replace(lastingUrl(await response.blob(), "text/plain; charset=utf-8"));
  } catch (error) {
    opened?.close();
    throw error;
  }
}

/** As this type and no other: a page out of a log would run as one of ours. */
function lastingUrl(blob: Blob, type: string): string {
  const url = URL.createObjectURL(blob.slice(0, blob.size, type));
  setTimeout(() => URL.revokeObjectURL(url), TAKEN);
  return url;
}

/** The name in a `Content-Disposition` (RFC 6266). */
export function fileNameOf(header: string | null): string | null {
  const encoded = /filename\*=utf-8''([^;]+)/i.exec(header ?? "")?.[1];
  if (encoded) return decodeURIComponent(encoded);
  return /filename="([^"]*)"/i.exec(header ?? "")?.[1] ?? null;
}
