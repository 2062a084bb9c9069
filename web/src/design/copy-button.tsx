/** Copies a text and says so. */

import { useEffect, useState } from "react";
import { Icon } from "./icon";

export function CopyButton({ label, text }: { label: string; text: () => string }) {
  const [outcome, setOutcome] = useState<string | null>(null);
  useEffect(() => {
    if (!outcome) return;
    const timer = setTimeout(() => setOutcome(null), 1500);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setOutcome("Copied");
    } catch {
      // Not allowed, or not there at all where the page is not served from this machine.
      setOutcome("Could not copy");
    }
  };
  return (
    <button type="button" className="button" onClick={copy}>
      <Icon name="link" size={14} />
      <span aria-live="polite">{outcome ?? label}</span>
    </button>
  );
}
