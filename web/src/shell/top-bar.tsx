/** The bar on every page: the pages, the search, theme and help. */

import { Link, useLocation } from "wouter";
import { Icon } from "@/design/icon";
import { openKeyHelp } from "./key-help";
import { PAGES } from "./pages";
import { SearchBox } from "./search-box";
import { toggleTheme, useTheme } from "./theme";

export function TopBar() {
  const [location] = useLocation();
  const theme = useTheme();
  return (
    <header className="top-bar">
      <Link href="/" className="brand">
        turnlog
      </Link>
      <nav className="top-pages" aria-label="Pages">
        {PAGES.map(({ href, label }) => (
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

function isCurrent(href: string, location: string): boolean {
  return href === "/" ? location === "/" || location.startsWith("/sessions") : location === href;
}
