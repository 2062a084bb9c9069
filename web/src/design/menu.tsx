/** A button with a panel of choices below it. Escape, a click elsewhere and a choice close it; arrows move in it. */

import { type KeyboardEvent, type ReactNode, type ToggleEvent, useId, useRef } from "react";
import { Icon, type IconName } from "./icon";
import "./menu.css";

interface MenuProps {
  label: string;
  icon: IconName;
  /** Says what is in it; on a small screen the label is not seen. */
  title: string;
  children: ReactNode;
}

/** Pixels between the button and its panel, and between the panel and the lower edge of the window. */
const GAP = 4;
const EDGE = 8;

export function Menu({ label, icon, title, children }: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const enter = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    panel.current?.showPopover();
    panel.current?.querySelector<HTMLElement>(ITEMS)?.focus();
  };
  const place = (event: ToggleEvent<HTMLElement>) => {
    if (event.newState !== "open" || !button.current) return;
    const box = button.current.getBoundingClientRect();
    const { style } = event.currentTarget;
    style.top = `${box.bottom + GAP}px`;
    style.setProperty("--menu-right", `${window.innerWidth - box.right}px`);
    style.maxHeight = `${window.innerHeight - box.bottom - GAP - EDGE}px`;
  };
  return (
    <>
      <button
        type="button"
        className="button"
        title={title}
        ref={button}
        popoverTarget={id}
        onKeyDown={enter}
      >
        <Icon name={icon} size={14} /> <span>{label}</span>
      </button>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: arrows are a way more to move among its buttons and links */}
      <div id={id} ref={panel} className="menu" popover="auto" onBeforeToggle={place} onKeyDown={moveFocus}>
        {children}
      </div>
    </>
  );
}

export function MenuSection({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="menu-section" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

const ITEMS = "a, button, input";

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

function moveFocus(event: KeyboardEvent<HTMLElement>): void {
  const step = STEPS[event.key];
  if (!step) return;
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>(ITEMS)];
  const current = items.indexOf(document.activeElement as HTMLElement);
  event.preventDefault();
  items[Math.min(Math.max(current + step, 0), items.length - 1)]?.focus();
}
