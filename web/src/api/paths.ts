/** Addresses: of the server's answers, and of the pages that show them. */

import { decodePart, formatAnchor } from "./anchor";

export const SESSIONS = "/api/sessions";
export const SEARCH = "/api/search";
export const USAGE = "/api/usage";
export const USAGE_COMPARISON = "/api/usage/comparison";
export const INSIGHTS = "/api/insights";
export const FILES = "/api/files";
export const TOUCHED_FILES = "/api/files/touched";
export const STATUS = "/api/status";
export const EVENTS = "/api/events";
export const PROJECTS = "/api/projects";
export const AGENTS = "/api/agents";
export const TOOL_CALLS = "/api/tool-calls";
export const TOOLS = "/api/tools";
export const MODELS = "/api/models";
export const HANDOFFS = "/api/handoffs";
export const FILE_LINES = "/api/files/lines";

export function sessionPath(id: string): string {
  return `${SESSIONS}/${encodeURIComponent(id)}`;
}

/** How large what the model was sent was, step by step. */
export function contextPath(id: string): string {
  return `${sessionPath(id)}/context`;
}

/** What came when in a session. */
export function replayPath(id: string): string {
  return `${sessionPath(id)}/replay`;
}

/** What a session committed. */
export function commitsPath(id: string): string {
  return `${sessionPath(id)}/commits`;
}

/** Where a session is handed to another agent. */
export function handoffPath(id: string): string {
  return `${sessionPath(id)}/handoff`;
}

/** Where a session goes on. */
export function promptPath(id: string): string {
  return `${sessionPath(id)}/prompt`;
}

/** Where permission requests of the agent are answered. */
export function promptAnswerPath(id: string): string {
  return `${promptPath(id)}/answer`;
}

export function messagePath(id: string): string {
  return `/api/messages/${encodeURIComponent(id)}`;
}

/** The bytes of an image; of anything else a download. */
export function blobPath(sha256: string): string {
  return `/api/blobs/${sha256}`;
}

export function blobTextPath(sha256: string): string {
  return `${blobPath(sha256)}?as=text`;
}

export function spillTextPath(sessionId: string, name: string): string {
  return `${sessionPath(sessionId)}/spills/${encodeURIComponent(name)}?as=text`;
}

/** What the sessions did to a file. */
export function filePage(path: string): string {
  return `/files?path=${encodeURIComponent(path)}`;
}

/** The page of a session, at a message or part of it. Colons stay as they are: nothing in a path needs them away. */
export function sessionPage(id: string, messageId?: string, part?: number | null): string {
  const page = `/sessions/${encodeURIComponent(id).replaceAll("%3A", ":")}`;
  return messageId ? `${page}#${formatAnchor(messageId, part)}` : page;
}

/** The page of a session at a hit, with the query in its field to find more. */
export function hitPage(id: string, query: string, messageId: string, part: number): string {
  const page = sessionPage(id, messageId, part);
  return query ? page.replace("#", `?find=${encodeURIComponent(query)}#`) : page;
}

/** The session that a page's path names, however much of it is percent-encoded. */
export function sessionOfPage(pathname: string): string {
  return decodePart(pathname.split("/")[2] ?? "");
}
