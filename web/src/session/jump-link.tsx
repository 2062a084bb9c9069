/** A link to another place of the same session, by the id of a message or event. */

import type { ReactNode } from "react";
import { type Destination, useSessionContext } from "./session-context";

export function JumpLink({ to, children }: { to: Destination; children: ReactNode }) {
  const { goTo } = useSessionContext();
  return (
    <button type="button" className="link jump" onClick={() => goTo(to)}>
      {children}
    </button>
  );
}
