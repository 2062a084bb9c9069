/** Tags and note of the open session, where there are any. */

import { Link } from "wouter";
import type { SessionItem } from "@/api/types";
import "./annotations.css";

export function AnnotationLine({ session: { annotations } }: { session: SessionItem }) {
  if (!annotations?.note && !annotations?.tags.length) return null;
  return (
    <p className="annotation-line">
      {annotations.tags.map((tag) => (
        <Link key={tag} href={`/?tag=${encodeURIComponent(tag)}`} className="tag">
          {tag}
        </Link>
      ))}
      {annotations.note && <span>{annotations.note}</span>}
    </p>
  );
}
