/** The pages of the top bar. */

import type { IconName } from "@/design/icon";

export const PAGES: { href: string; label: string; icon: IconName }[] = [
  { href: "/", label: "Sessions", icon: "list" },
  { href: "/search", label: "Search", icon: "search" },
  { href: "/projects", label: "Projects", icon: "folder" },
  { href: "/files", label: "Files", icon: "document" },
  { href: "/usage", label: "Usage", icon: "chart" },
  { href: "/insights", label: "Insights", icon: "clock" },
];
