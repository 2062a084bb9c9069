/** Around every part: the place that a link to the part leads to, flashing when it has just been reached. */

import type { ReactNode } from "react";
import { useLinked } from "../session-context";

interface PartFrameProps {
  messageId: string;
  id: string;
  className: string;
  children: ReactNode;
}

export function PartFrame({ messageId, id, className, children }: PartFrameProps) {
  const { flashing } = useLinked(messageId, id);
  return (
    <div className={flashing ? `${className} flash` : className} data-part={id}>
      {children}
    </div>
  );
}
