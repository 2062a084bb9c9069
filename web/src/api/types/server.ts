/** What the server is and does, and what there is in its store. */

import type { Json } from "./model";

export interface SyncProgress {
  state: "off" | "running" | "waiting" | "failed";
  phase: "find" | "read" | "index" | null;
  done: number;
  total: number;
  passes: number;
  started_at: string | null;
  ended_at: string | null;
  error: string | null;
  problems: SyncProblem[];
}

export interface SyncProblem {
  path: string;
  reason: string;
}

export interface StoreCounts {
  path: string;
  schema_version: number;
  file_size: number;
  sessions: number;
  subagents: number;
  messages: number;
  sources: number;
  source_bytes: number;
  archive_bytes: number;
  vanished: number;
  unreadable: number;
  diagnostics: number;
  last_sync_at: string | null;
}

export interface PromptAnswer {
  /** The server takes prompts, and the agent goes on with sessions. */
  can_go_on: boolean;
  /** The agent can ask for leave here. */
  can_ask: boolean;
  running: boolean;
  /** Why the last prompt failed. */
  problem: string | null;
  questions: PromptQuestion[];
}

/** A call that the agent asks leave for. */
export interface PromptQuestion {
  id: string;
  tool_call_id: string;
  tool_name: string | null;
  input: Json;
  /** What the agent says of it. */
  reason: string | null;
}

export interface StatusAnswer {
  version: string;
  sample: boolean;
  /** Whether sessions may go on from the page. */
  prompts: boolean;
  change_sequence: number;
  sync: SyncProgress;
  search: SearchProgress;
  store: StoreCounts;
}

export interface SearchProgress {
  pending: number;
}

export interface ProjectSummary {
  path: string;
  name: string;
  sessions: number;
  updated_at: string | null;
}

export interface ModelSummary {
  name: string;
  calls: number;
  sessions: number;
}

export interface AgentSummary {
  agent: string;
  sessions: number;
  subagents: number;
  sources: number;
  updated_at: string | null;
}
