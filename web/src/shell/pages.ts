/** The pages of the top bar. */

import type { IconName } from "@/design/icon";
import { useMe } from "@/hub/use-hub";

export interface Page {
  href: string;
  label: string;
  icon: IconName;
}

const PAGES: Page[] = [
  { href: "/", label: "Sessions", icon: "list" },
  { href: "/search", label: "Search", icon: "search" },
  { href: "/projects", label: "Projects", icon: "folder" },
  { href: "/files", label: "Files", icon: "document" },
  { href: "/usage", label: "Usage", icon: "chart" },
  { href: "/insights", label: "Insights", icon: "clock" },
];

const PAGES_OF_HUBS: Page[] = [...PAGES, { href: "/team", label: "Team", icon: "people" }];

/** Whoever reads with a link sees nothing of the team. */
export function usePages(): Page[] {
  return useMe()?.user ? PAGES_OF_HUBS : PAGES;
}
