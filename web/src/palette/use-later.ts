/** A text as it was when one last paused, so that not every letter asks the server. */

import { useEffect, useState } from "react";

const PAUSE = 120;

export function useLater(text: string): string {
  const [later, setLater] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setLater(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return later;
}
