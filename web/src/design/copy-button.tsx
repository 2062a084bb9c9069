/** Copies a text and says so. */

import { useEffect, useState } from "react";
import { Icon } from "./icon";

interface CopyButtonProps {
  label: string;
  /** What is copied; it may have to be loaded first. */
  text: () => string | Promise<string>;
  /** `button` with a frame, `icon-button` without its label, `link` in a line of text, `menu-item` in a menu. */
  className?: "button" | "icon-button" | "link" | "menu-item";
}

export function CopyButton({ label, text, className = "button" }: CopyButtonProps) {
  const [outcome, setOutcome] = useState<string | null>(null);
  useEffect(() => {
    if (!outcome) return;
    const timer = setTimeout(() => setOutcome(null), 1500);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(await text());
      setOutcome("Copied");
    } catch {
      // Not allowed, not to be had, or not there at all where the page is not served from this machine.
      setOutcome("Could not copy");
    }
  };
  if (className === "icon-button")
    return (
      <button type="button" className={className} onClick={copy} title={outcome ?? label}>
        <Icon name={outcome === "Copied" ? "check" : outcome ? "cross" : "copy"} size={14} />
        <span className="visually-hidden" aria-live="polite">
          {outcome ?? label}
        </span>
      </button>
    );
  return (
    <button type="button" className={className} onClick={copy}>
      {className === "button" && <Icon name="link" size={14} />}
      <span aria-live="polite">{outcome ?? label}</span>
    </button>
  );
}
