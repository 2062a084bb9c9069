/** The parts of a message other than tool calls. A part of an unknown kind is a neutral box with its JSON. */

import { useRef, useState } from "react";
import { download, useObjectUrl } from "@/api/files";
import { blobPath } from "@/api/paths";
import type { BlobRef, FilePart, Json, Part, ReasoningPart, SourceUrlPart, TextPart } from "@/api/types";
import { JsonCode } from "@/content/json-view";
import { Markdown } from "@/content/markdown";
import { Icon } from "@/design/icon";
import { LoadButton } from "@/design/load-button";
import { formatBytes, plural } from "@/format/numbers";
import { useAll, useDisclosure } from "@/session/disclosure";
import { WholeText, wholeOf } from "./whole-text";
import "./part-view.css";
import { formatDuration } from "@/format/time";
import { useLinked } from "@/session/session-context";
import { disclosureId, PartFrame, type PartPlace } from "./part-frame";

export function PartView({ part, breaks = false }: { part: Part; breaks?: boolean }) {
  switch (part.type) {
    case "text":
      return <Text part={part} breaks={breaks} />;
    case "file":
      return <FileView part={part} />;
    case "source-url":
      return <SourceLink part={part} />;
    case "source-document":
      return <p className="source">{part.title}</p>;
    case "data":
      return <FoldedBox title={part.name} value={part.data} />;
    case "unknown":
      return <Box title={`Unknown part: ${part.kind}`} value={part.data} />;
    default:
      return <Box title={part.type} value={part as unknown as Json} />;
  }
}

function Text({ part, breaks }: { part: TextPart; breaks: boolean }) {
  return (
    <>
      <WholeText preview={part.text} whole={wholeOf(part.blob)}>
        {(text) => <Markdown text={text} breaks={breaks} />}
      </WholeText>
      {part.citations && <Citations part={part} />}
    </>
  );
}

function Citations({ part }: { part: TextPart }) {
  return (
    <ul className="citations" aria-label="Sources">
      {part.citations?.map((citation, index) => (
        <li key={index}>
          <WebLink
            url={citation.url}
            label={citation.title ?? citation.document ?? citation.url ?? "source"}
          />
        </li>
      ))}
    </ul>
  );
}

function SourceLink({ part }: { part: SourceUrlPart }) {
  return (
    <p className="source">
      <Icon name="link" size={14} /> <WebLink url={part.url} label={part.title ?? part.url} />
    </p>
  );
}

function WebLink({ url, label }: { url: string | undefined; label: string }) {
  if (!url || !/^https?:\/\//i.test(url)) return <>{label}</>;
  return (
    <a className="link" href={url} target="_blank" rel="noopener noreferrer nofollow">
      {label}
    </a>
  );
}

function Box({ title, value }: { title: string; value: Json }) {
  return (
    <figure className="box">
      <figcaption>{title}</figcaption>
      <JsonCode value={value} />
    </figure>
  );
}

/** The values of some JSON on one line, without quotes and braces. */
export function glanceOf(value: Json): string {
  if (value === null || typeof value !== "object") return String(value).slice(0, GLANCE);
  const fields = Object.entries(value).filter(([name]) => name !== "type");
  const texts = fields.map(([name, field]) => {
    const text = Array.isArray(field) ? field.map(glanceOf).join(", ") : glanceOf(field);
    return Array.isArray(value) ? text : `${name} ${text}`;
  });
  return texts.join(" · ").slice(0, GLANCE);
}

const GLANCE = 200;

/** Data that an application or an agent recorded for itself, folded to one line. */
function FoldedBox({ title, value }: { title: string; value: Json }) {
  const all = useAll() === true;
  const [opened, setOpened] = useState(false);
  const open = opened || all;
  return (
    <div className="box-fold">
      <button
        type="button"
        className="fold fold-faint"
        aria-expanded={open}
        onClick={() => setOpened(!opened)}
        data-toggle
      >
        <Icon name="record" size={14} />
        <span>{title}</span>
        {!open && <span className="fold-preview">{glanceOf(value)}</span>}
      </button>
      {open && (
        <div className="box">
          <JsonCode value={value} />
        </div>
      )}
    </div>
  );
}

/**
 * A file in a message: an image as a thumbnail that opens, anything else as a link. No request leaves for another host.
 */
export function FileView({ part }: { part: FilePart }) {
  const name = part.filename ?? (part.media_type.startsWith("image/") ? "Image" : part.media_type);
  if (part.blob && part.media_type.startsWith("image/")) return <Image blob={part.blob} name={name} />;
  const size = part.blob && formatBytes(part.blob.size);
  const { blob } = part;
  const href = webAddress(part.url);
  const label = [name, part.media_type !== name && part.media_type, size].filter(Boolean).join(" · ");
  return (
    <p className="file">
      <Icon name="document" />
      {blob ? (
        <LoadButton className="link" load={() => download(blobPath(blob.sha256))}>
          {label}
        </LoadButton>
      ) : (
        <WebLink url={href ?? undefined} label={label} />
      )}
    </p>
  );
}

function Image({ blob, name }: { blob: BlobRef; name: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const address = useObjectUrl(blobPath(blob.sha256)) ?? undefined;
  return (
    <>
      <button type="button" className="thumbnail" onClick={() => dialog.current?.showModal()}>
        <img src={address} alt={name} decoding="async" />
        <span className="thumbnail-label">
          {name} · {formatBytes(blob.size)}
        </span>
      </button>
      <dialog ref={dialog} className="lightbox" aria-label={name}>
        <form method="dialog">
          <button type="submit" aria-label="Close">
            <img src={address} alt={name} />
          </button>
        </form>
      </dialog>
    </>
  );
}

function webAddress(url: string | undefined): string | null {
  return url && /^https?:\/\//i.test(url) ? url : null;
}

interface ReasoningProps {
  part: ReasoningPart;
  place: PartPlace;
}

/** What the model thought, folded to its length; the page says when the log does not have it. */
export function Reasoning({ part, place }: ReasoningProps) {
  const { linked } = useLinked(place.messageId, place.index);
  const [open, toggle] = useDisclosure(disclosureId(place), linked);
  if (!part.text && !part.blob) return <WithheldReasoning part={part} place={place} />;
  return (
    <PartFrame place={place} className="reasoning">
      <button type="button" className="fold" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name="think" />
        <span>Thinking</span>
        {!open && <span className="fold-preview">{reasoningPreview(part.text)}</span>}
        <span className="fold-size">{reasoningSize(part)}</span>
      </button>
      {open && (
        <div className="reasoning-text">
          <WholeText preview={part.text} whole={wholeOf(part.blob)}>
            {(text) => <Markdown text={text} />}
          </WholeText>
        </div>
      )}
    </PartFrame>
  );
}

/** The provider counted it, but the log has nothing of it. */
export function UnrecordedReasoning({ tokens }: { tokens: number }) {
  return (
    <p className="reasoning fold fold-still">
      <Icon name="think" />
      <span>Thinking, not recorded</span>
      <span className="fold-size">{plural(tokens, "token")}</span>
    </p>
  );
}

function WithheldReasoning({ part, place }: ReasoningProps) {
  return (
    <PartFrame place={place} className="reasoning">
      <p className="fold fold-still">
        <Icon name="think" />
        <span>{part.redacted ? "Thinking, withheld by the provider" : "Thinking, not recorded"}</span>
      </p>
    </PartFrame>
  );
}

/** The first words without the marks of Markdown. */
function reasoningPreview(text: string): string {
  return text
    .slice(0, 400)
    .replace(/[*_`#>]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

function reasoningSize(part: ReasoningPart): string {
  const words = plural(part.text.split(/\s+/).filter(Boolean).length, "word");
  return part.duration_ms === undefined ? words : `${words} · ${formatDuration(part.duration_ms)}`;
}
