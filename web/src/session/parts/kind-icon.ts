/** A sign for each kind of tool, whatever its agent calls it. */

import type { ToolKind } from "@/api/types";
import type { IconName } from "@/design/icon";

export const KIND_ICONS: Record<ToolKind, IconName> = {
  read: "read",
  edit: "edit",
  delete: "trash",
  move: "move",
  search: "search",
  execute: "terminal",
  think: "list",
  fetch: "fetch",
  subagent: "agent",
  ask: "question",
  switch_mode: "mode",
  other: "tool",
};
