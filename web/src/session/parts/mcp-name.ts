/** Tools of MCP servers: which server, which tool. */

import type { ToolCallPart } from "@/api/types";

export interface McpName {
  server: string;
  tool: string;
}

/** "mcp__git_hub__list_issues" of most agents; "mcp_git_list" of Gemini CLI, which titles it "list (git MCP Server)". */
export function mcpNameOf(call: ToolCallPart): McpName | null {
  const named = /^mcp__(.+?)__(.+)$/.exec(call.tool_name);
  if (named) return { server: named[1] ?? "", tool: named[2] ?? "" };
  const titled = /^(.+) \((.+) MCP Server\)$/.exec(call.title ?? "");
  return titled ? { tool: titled[1] ?? "", server: titled[2] ?? "" } : null;
}
