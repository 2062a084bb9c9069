/** What is found: in texts, in calls, in files. */

import type { Role, ToolCallPart, ToolKind } from "./model";

export type SearchField = "text" | "reasoning" | "input" | "output" | "file";

export interface SearchHit {
  message_id: string;
  position: number;
  /** Index in the message's parts. */
  part: number;
  field: SearchField;
  role: Role;
  tool_name: string | null;
  created_at: string | null;
  snippet: SnippetPiece[];
  /** Forks that hold the same message. */
  also_in: SessionPosition[];
}

export interface SnippetPiece {
  text: string;
  marked: boolean;
}

export interface SessionPosition {
  session_id: string;
  position: number;
}

export interface FoundSession {
  id: string;
  agent: string;
  title: string | null;
  /** Path of the project. */
  project: string | null;
}

export interface SearchGroup {
  session: FoundSession;
  hits: SearchHit[];
}

export interface SearchAnswer {
  items: SearchGroup[];
  next_cursor: string | null;
  /** Hits in all; counted for the first page only. */
  total: number | null;
  total_is_exact: boolean;
  pending: number;
}

/** What one session did to a file. */
export interface FileUse {
  session: FoundSession;
  calls: number;
  /** Calls that changed it. */
  edits: number;
  kinds: string[];
  first_at: string | null;
  last_at: string | null;
}

export interface FileTouch {
  /** The file, from anywhere. */
  path: string;
  call: ToolCall;
  /** The call itself, where it changed the file. Large contents are previews. */
  part: ToolCallPart | null;
}

export interface FileAnswer {
  path: string;
  sessions: FileUse[];
  items: FileTouch[];
  next_cursor: string | null;
}

export interface TouchedFile {
  path: string;
  sessions: number;
  calls: number;
  edits: number;
  last_at: string | null;
}

export interface TouchedFiles {
  items: TouchedFile[];
}

export interface ToolCall {
  tool_call_id: string;
  tool_name: string;
  kind: string;
  state: string;
  message_id: string;
  session_id: string;
  position: number;
  agent: string;
  started_at: string | null;
  completed_at: string | null;
  duration_ms: number | null;
  exit_code: number | null;
  path: string | null;
  input_size: number;
  output_size: number;
}

export interface ToolCallPage {
  items: ToolCall[];
  next_cursor: string | null;
}

export interface ToolUsage {
  tool_name: string;
  kind: ToolKind;
  calls: number;
  failed: number;
  denied: number;
  aborted: number;
  unanswered: number;
  duration_ms: number;
  unknown_durations: number;
}
