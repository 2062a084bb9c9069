/** Sessions in lists and by themselves, what they do, and what changes of them as it happens. */

import type { Cost, Fate, HistoryEvent, JsonObject, Message, Usage } from "./model";
import type { Placement } from "./timeline";

export type RelationshipKind = "subagent" | "fork" | "continuation";

export interface Relationship {
  kind: RelationshipKind;
  parent_session_id: string;
  parent_tool_call_id?: string;
  parent_message_id?: string;
  inferred?: boolean;
}

export interface Project {
  path: string;
  name: string;
}

export interface SessionCounts {
  messages?: number;
  prompts?: number;
  turns?: number;
  steps?: number;
  tool_calls?: number;
  failed_tool_calls?: number;
  reasoning_parts?: number;
  files?: number;
  events?: number;
  diagnostics?: number;
}

export interface UsageTotal {
  usage?: Usage;
  calls?: number;
  unknown_calls?: number;
}

export interface Ownership {
  user?: string;
  team?: string;
  task?: string;
  machine?: string;
}

export interface Session {
  id: string;
  agent: string;
  external_id: string;
  title?: string;
  title_source?: "user" | "custom" | "generated" | "summary" | "prompt";
  project?: Project;
  cwd?: string;
  git_branch?: string;
  git_commit?: string;
  agent_version?: string;
  models?: string[];
  created_at?: string;
  updated_at?: string;
  relationships?: Relationship[];
  ownership?: Ownership;
  native?: boolean;
  counts?: SessionCounts;
  usage?: UsageTotal;
  cost?: Cost;
  unpriced_calls?: number;
  reported_cost?: Cost;
  metadata?: JsonObject;
}

export interface Annotations {
  title: string | null;
  starred: boolean;
  archived: boolean;
  tags: string[];
  note: string | null;
  changed_at: string | null;
}

export interface SessionItem extends Session {
  /** The first 200 characters of what it was asked first. */
  first_prompt?: string;
  /** How many sessions came out of it: subagents, forks, continuations. */
  children?: number;
  annotations?: Annotations;
  state?: SessionState;
  resume?: ResumeCommand;
}

export type StateName = "running" | "waiting" | "done" | "killed" | "quiet";

/** How its agent goes on with a session. */
export interface ResumeCommand {
  folder: string | null;
  /** The program and its arguments, none of them quoted. */
  command: string[];
}

/** A tool call without a final result. */
export interface OpenCall {
  tool_call_id: string;
  tool_name: string;
  kind: string;
  state: string;
  started_at: string | null;
  /** A command, a path, a question. */
  summary: string | null;
}

/** What a session is doing, and how that is known: docs/session-state.md. */
export interface SessionState {
  state: StateName;
  evidence: string;
  detail: string | null;
  since: string | null;
  /** When `running` turns into `quiet` unless something comes. */
  quiet_at: string | null;
  doing: OpenCall | null;
}

export interface SessionPage {
  items: SessionItem[];
  next_cursor: string | null;
  total: number;
  /** Changes after this number of the change sequence are still to come. */
  change_sequence: number;
}

export interface SessionAnswer {
  session: SessionItem;
  /** Null too when the parent is not in the store: the session's relationships name it. */
  parent: SessionItem | null;
  children: SessionItem[];
  forks: SessionItem[];
  first_position: number | null;
  last_position: number | null;
  /** Changes after this number of the change sequence are still to come. */
  change_sequence: number;
}

/** Of `ready`, `resync` and `gone`. */
export interface ChangePlace {
  sequence: number;
}

/** Of `sessions`. */
export interface SessionsChange {
  sequence: number;
  items: SessionItem[];
}

/** Of `session`. */
export interface SessionChange {
  sequence: number;
  session: SessionItem;
  /** Messages that are new or have changed, each whole. */
  items: Message[];
  /** One for each of them, then those of messages whose place or fate alone has changed. */
  rows: Placement[];
  events: HistoryEvent[];
  /** Ids of messages that are no longer part of the session: take them out first. */
  gone_messages: string[];
  /** Position and id of events that are no longer there; of a result without its call, `<tool_call_id>:<result id>`. */
  gone_events: [position: number, id: string][];
  /** Subagents of which anything has changed. */
  children: SessionItem[];
}

export interface OutlineEntry {
  position: number;
  kind: string;
  text: string;
  message_id: string | null;
  turn: number | null;
  created_at: string | null;
  fate: Fate | null;
}
