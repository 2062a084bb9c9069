/** The current time, updated every few seconds, for words like "2 minutes ago". */

import { useEffect, useState } from "react";

const STEP = 15_000;

export function useClock(): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), STEP);
    return () => clearInterval(timer);
  }, []);
  return now;
}
