/** Pages that were found or read, as links with the host that one would go to. */

import { Icon } from "@/design/icon";
import type { WebResult } from "./web-results";
import "./web-links.css";

export function WebLinks({ links }: { links: WebResult[] }) {
  return (
    <ul className="web-links" aria-label="Pages">
      {links.map((link) => (
        <li key={link.url}>
          <Icon name="link" size={13} />
          <a
            className="link"
            href={link.url}
            title={link.url}
            target="_blank"
            rel="noopener noreferrer nofollow"
          >
            {link.title}
          </a>
          <span className="web-host">{hostOf(link.url)}</span>
        </li>
      ))}
    </ul>
  );
}

function hostOf(url: string): string {
  return /^https?:\/\/([^/?#]*)/i.exec(url)?.[1] ?? "";
}
