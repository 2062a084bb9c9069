/** A session that one wants to find again. */

import type { SessionItem } from "@/api/types";
import { Icon } from "@/design/icon";
import { useAnnotate } from "./use-annotate";
import "./annotations.css";

export function StarButton({ session }: { session: SessionItem }) {
  const annotate = useAnnotate(session);
  const starred = annotate.isPending ? annotate.variables.starred : session.annotations?.starred;
  return (
    <button
      type="button"
      className="icon-button star"
      aria-pressed={starred ?? false}
      aria-label="Star"
      title={starred ? "Starred" : "Star (s)"}
      data-key="s"
      onClick={() => annotate.mutate({ starred: !session.annotations?.starred })}
    >
      <Icon name="star" size={14} />
    </button>
  );
}
