/** What a session is doing: a dot, a word, and the call that is open. In lists only where that is news. */

import type { SessionItem } from "@/api/types";
import { evidenceOf, isActive, pastState, stateAt, stateLabel } from "./state-of";
import "./state-badge.css";

interface StateBadgeProps {
  session: SessionItem;
  now: Date;
  /** Also where it is no news. */
  always?: boolean;
}

export function StateBadge({ session: { state }, now, always = false }: StateBadgeProps) {
  const label = state && (stateLabel(state, now) ?? (always ? pastState(state, now) : null));
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
