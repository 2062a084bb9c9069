/** A long text: its preview first, the whole on demand. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { getText } from "@/api/client";
import { openText } from "@/api/files";
import { blobTextPath } from "@/api/paths";
import type { BlobRef } from "@/api/types";
import { LoadButton } from "@/design/load-button";
import { formatBytes, formatCount } from "@/format/numbers";
import { useSoughtWords } from "./part-frame";

/** Beyond this the page would stall; the browser's own plain text view does not. */
const LARGEST_INLINE = 2_000_000;

/** Of a text up to this size, the passage around what was found is shown. */
const LARGEST_SEARCHED = 64_000_000;

/** Characters of that passage. */
const PASSAGE = 60_000;

/** Where the whole text is. */
export interface Whole {
  address: string;
  /** Bytes; null when it is not known before it is loaded. */
  size: number | null;
}

export function wholeOf(blob: BlobRef | undefined): Whole | null {
  return blob ? { address: blobTextPath(blob.sha256), size: blob.size } : null;
}

interface WholeTextProps {
  preview: string;
  whole: Whole | null;
  children?: (text: string) => ReactNode;
}

export function WholeText({ preview, whole, children = plain }: WholeTextProps) {
  const [isAsked, setAsked] = useState(false);
  const words = useSoughtWords();
  const size = whole?.size ?? 0;
  const isInline = size <= LARGEST_INLINE;
  // What was found further down is shown like anything else that was found.
  const isBelow = size <= LARGEST_SEARCHED && words.some((word) => !preview.toLowerCase().includes(word));
  const wanted = isAsked || isBelow;
  const text = useQuery({
    queryKey: ["text", whole?.address],
    queryFn: ({ signal }) => getText(whole?.address ?? "", signal),
    enabled: wanted && whole !== null,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const passage = text.data === undefined || isInline ? text.data : passageAround(text.data, words);
  return (
    <>
      {children(passage ?? preview)}
      {whole && (passage === undefined || !isInline) && (
        <p className="tool-note">
          {passage === undefined ? sizes(preview, whole) : `What was found, in ${formatBytes(size)}.`}{" "}
          {isInline && (
            <button type="button" className="link" onClick={() => setAsked(true)} disabled={text.isFetching}>
              {text.isFetching ? "Loading…" : "Show all"}
            </button>
          )}{" "}
          <LoadButton className="link" load={() => openText(whole.address)}>
            Open as plain text
          </LoadButton>
          {text.isError && ` Could not be loaded: ${text.error.message}`}
        </p>
      )}
    </>
  );
}

/** The lines around the first of these words (in lower case); undefined if none of them is in the text. */
export function passageAround(text: string, words: string[]): string | undefined {
  const lower = text.toLowerCase();
  const at = Math.min(...words.map((word) => lower.indexOf(word)).filter((place) => place >= 0));
  if (!Number.isFinite(at)) return undefined;
  const start = text.lastIndexOf("\n", at - PASSAGE / 2) + 1;
  const end = text.indexOf("\n", at + PASSAGE / 2);
  // A single line may be longer than the whole passage.
  return text.slice(Math.max(start, at - PASSAGE), Math.min(end < 0 ? text.length : end, at + PASSAGE));
}

function sizes(preview: string, { size }: Whole): string {
  const shown = `The first ${formatCount(preview.length)} characters`;
  return size === null ? "The agent kept only a preview here." : `${shown} of ${formatBytes(size)}.`;
}

function plain(text: string): ReactNode {
  return (
    <pre className="output" tabIndex={0}>
      {text}
    </pre>
  );
}
