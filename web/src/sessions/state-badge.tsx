/** What a session is doing, where that is news: a dot, a word, and the call that is open. */

import type { SessionItem } from "@/api/types";
import { evidenceOf, isActive, stateAt, stateLabel } from "./state-of";
import "./state-badge.css";

export function StateBadge({ session: { state }, now }: { session: SessionItem; now: Date }) {
  const label = state && stateLabel(state, now);
  if (!label) return null;
  const doing = isActive(state, now) ? state.doing : null;
  return (
    <span className="state-badge" data-state={stateAt(state, now)} title={evidenceOf(state)}>
      <span className="state-dot" />
      {label}
      {doing && (
        <span className="state-doing">
          {doing.tool_name} {doing.summary}
        </span>
      )}
    </span>
  );
}
