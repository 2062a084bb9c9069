/** A filter that is typed: applied when one pauses. */

import { useEffect, useRef, useState } from "react";

interface FilterTextProps {
  label: string;
  placeholder: string;
  value: string;
  onChange: (value: string) => void;
}

const PAUSE = 250;

export function FilterText({ label, placeholder, value, onChange }: FilterTextProps) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    // The address changed by other means (back, a link): follow it.
    if (value !== sent.current) {
      sent.current = value;
      setText(value);
    }
  }, [value]);
  useEffect(() => {
    const wanted = text.trim();
    if (wanted === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = wanted;
      onChange(wanted);
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [text, onChange]);
  return (
    <input
      type="search"
      className="field filter-text"
      aria-label={label}
      placeholder={placeholder}
      value={text}
      data-set={value !== "" || undefined}
      onChange={(event) => setText(event.target.value)}
    />
  );
}
