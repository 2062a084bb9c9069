/** Ctrl-K: type a few letters, pick with the arrow keys, Enter goes there, also who is faster than the answer. */

import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { useLocation } from "wouter";
import { Icon } from "@/design/icon";
import { type Entry, useEntries } from "./use-entries";
import "./palette.css";

export function Palette({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [current, setCurrent] = useState(0);
  const [entered, setEntered] = useState(false);
  const { entries, settled } = useEntries(text.trim(), usePausedText(text.trim()));
  const [, navigate] = useLocation();
  const list = useId();
  const chosen = Math.min(current, entries.length - 1);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    document.getElementById(`${list}-${chosen}`)?.scrollIntoView({ block: "nearest" });
  }, [list, chosen]);

  const open = ({ to }: Entry) => {
    setEntered(false);
    dialog.current?.close();
    if (typeof to === "string") navigate(to);
    else to();
  };
  const entry = entries[chosen];
  useEffect(() => {
    if (entered && settled && entry) open(entry);
  });
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step && entries.length > 0) setCurrent((chosen + step + entries.length) % entries.length);
    else if (event.key === "Enter") setEntered(true);
    else return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click outside closes it; the keyboard has Escape
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Go to"
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <div className="palette-field">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-label="Go to a session, a word, a tag or a page"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={entries.length > 0 ? `${list}-${chosen}` : undefined}
          placeholder="Go to a session, a word, a tag, a page"
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setCurrent(0);
            setEntered(false);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      <div id={list} className="palette-list" role="listbox" aria-label="Results">
        {entries.map((entry, index) => (
          <Option
            key={entry.id}
            id={`${list}-${index}`}
            entry={entry}
            heading={entry.group === entries[index - 1]?.group ? null : entry.group}
            selected={index === chosen}
            onPoint={() => setCurrent(index)}
            onOpen={() => open(entry)}
          />
        ))}
      </div>
    </dialog>
  );
}

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

interface OptionProps {
  id: string;
  entry: Entry;
  heading: string | null;
  selected: boolean;
  onPoint: () => void;
  onOpen: () => void;
}

function Option({ id, entry, heading, selected, onPoint, onOpen }: OptionProps) {
  return (
    <>
      {heading && (
        <p className="palette-group" role="presentation">
          {heading}
        </p>
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field keeps the focus and handles the keys */}
      <div
        id={id}
        role="option"
        tabIndex={-1}
        aria-selected={selected}
        className="palette-entry"
        onMouseMove={onPoint}
        onClick={onOpen}
      >
        <Icon name={entry.icon} size={14} />
        <span className="palette-label" dir="auto">
          {entry.snippet ? <Marked entry={entry} /> : entry.label}
        </span>
        {entry.detail && <span className="palette-detail">{entry.detail}</span>}
      </div>
    </>
  );
}

function Marked({ entry }: { entry: Entry }) {
  return entry.snippet?.map(({ text, marked }, index) =>
    marked ? <mark key={index}>{text}</mark> : <span key={index}>{text}</span>,
  );
}

/** Milliseconds without a key press after which a text is sent to the server. */
const PAUSE = 120;

/** A text as it was when typing last paused. */
function usePausedText(text: string): string {
  const [paused, setPaused] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return paused;
}
