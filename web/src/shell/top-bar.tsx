/** The bar on every page: the pages (on a phone in a menu), the search, theme and help. */

import { useRef } from "react";
import { Link, useLocation } from "wouter";
import { Icon } from "@/design/icon";
import { Menu } from "@/design/menu";
import { openKeyHelp } from "./key-help";
import { usePages } from "./pages";
import { SearchBox } from "./search-box";
import { toggleTheme, useTheme } from "./theme";

export function TopBar() {
  const [location] = useLocation();
  const theme = useTheme();
  const pages = usePages();
  return (
    <header className="top-bar">
      <Link href="/" className="brand">
        turnlog
      </Link>
      <nav className="top-pages" aria-label="Pages">
        {pages.map(({ href, label }) => (
          <Link
            key={href}
            href={href}
            aria-current={isCurrent(href, location) ? "page" : undefined}
            data-label={label}
          >
            {label}
          </Link>
        ))}
      </nav>
      <PageMenu location={location} />
      <SearchBox />
      <button
        type="button"
        className="top-button"
        onClick={toggleTheme}
        aria-label={theme === "dark" ? "Light theme" : "Dark theme"}
      >
        <Icon name={theme === "dark" ? "sun" : "moon"} />
      </button>
      <button
        type="button"
        className="top-button top-help"
        onClick={openKeyHelp}
        aria-label="Keyboard shortcuts"
        title="Keyboard shortcuts (?)"
      >
        <Icon name="help" />
      </button>
    </header>
  );
}

/** Every page, where the bar has no room for their names. */
function PageMenu({ location }: { location: string }) {
  const pages = usePages();
  const frame = useRef<HTMLElement>(null);
  const close = () => frame.current?.querySelector<HTMLElement>("[popover]")?.hidePopover();
  return (
    <nav className="top-menu" aria-label="All pages" ref={frame}>
      <Menu
        label={pages.find(({ href }) => isCurrent(href, location))?.label ?? "Pages"}
        icon="list"
        title="All pages"
      >
        {pages.map(({ href, label, icon }) => (
          <Link
            key={href}
            href={href}
            className="menu-item"
            aria-current={isCurrent(href, location) ? "page" : undefined}
            onClick={close}
          >
            <Icon name={icon} size={14} /> {label}
          </Link>
        ))}
      </Menu>
    </nav>
  );
}

function isCurrent(href: string, location: string): boolean {
  if (href === "/") return location === "/" || location.startsWith("/sessions");
  return location === href || location.startsWith(`${href}/`);
}
