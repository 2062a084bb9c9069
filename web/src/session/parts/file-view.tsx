/** A file in a message: an image as a thumbnail that opens, anything else as a link. Other hosts are never asked. */

import { useRef } from "react";
import { blobPath } from "@/api/paths";
import type { BlobRef, FilePart } from "@/api/types";
import { Icon } from "@/design/icon";
import { formatBytes } from "@/format/numbers";
import "./file-view.css";

export function FileView({ part }: { part: FilePart }) {
  const name = part.filename ?? (part.media_type.startsWith("image/") ? "Image" : part.media_type);
  if (part.blob && part.media_type.startsWith("image/")) return <Image blob={part.blob} name={name} />;
  const size = part.blob && formatBytes(part.blob.size);
  const href = part.blob ? blobPath(part.blob.sha256) : webAddress(part.url);
  const label = [name, part.media_type !== name && part.media_type, size].filter(Boolean).join(" · ");
  return (
    <p className="file">
      <Icon name="document" />
      {href ? (
        <a className="link" href={href} target="_blank" rel="noopener noreferrer nofollow">
          {label}
        </a>
      ) : (
        label
      )}
    </p>
  );
}

function Image({ blob, name }: { blob: BlobRef; name: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const address = blobPath(blob.sha256);
  return (
    <>
      <button type="button" className="thumbnail" onClick={() => dialog.current?.showModal()}>
        <img src={address} alt={name} loading="lazy" decoding="async" />
        <span className="thumbnail-label">
          {name} · {formatBytes(blob.size)}
        </span>
      </button>
      <dialog ref={dialog} className="lightbox" aria-label={name}>
        <form method="dialog">
          <button type="submit" aria-label="Close">
            <img src={address} alt={name} loading="lazy" />
          </button>
        </form>
      </dialog>
    </>
  );
}

function webAddress(url: string | undefined): string | null {
  return url && /^https?:\/\//i.test(url) ? url : null;
}
