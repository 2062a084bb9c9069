/** What a session is filed under. */

import "./annotations.css";

export function TagLabels({ tags }: { tags: string[] | undefined }) {
  return tags?.map((tag) => (
    <span key={tag} className="tag">
      {tag}
    </span>
  ));
}
