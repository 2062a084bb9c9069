/**
 * What the server sends. Fields at their default are left out of a message's JSON, so most are optional here.
 * A test compares every interface with the server's own schemas by name and field.
 */

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

export type JsonObject = { [name: string]: Json };

// ---- the model -----------------------------------------------------------------------------------------------

export type Role = "system" | "developer" | "user" | "assistant";

export type Origin =
  | "prompt"
  | "command"
  | "command_output"
  | "shell"
  | "shell_output"
  | "harness"
  | "notification"
  | "compaction"
  | "subagent_prompt";

export type Fate = "active" | "compacted" | "rewound" | "retracted" | "superseded" | "sidecar";

export type ToolKind =
  | "read"
  | "edit"
  | "delete"
  | "move"
  | "search"
  | "execute"
  | "think"
  | "fetch"
  | "subagent"
  | "ask"
  | "switch_mode"
  | "other";

export type ToolState =
  | "input-streaming"
  | "input-available"
  | "approval-requested"
  | "approval-responded"
  | "output-available"
  | "output-error"
  | "output-denied"
  | "aborted";

export type ResultStatus = "success" | "error" | "aborted" | "denied";

export interface BlobRef {
  sha256: string;
  size: number;
  media_type?: string;
}

export interface Usage {
  input?: number;
  cache_read?: number;
  cache_write_5m?: number;
  cache_write_1h?: number;
  cache_write?: number;
  output?: number;
  reasoning?: number;
  tool_prompt?: number;
  service_tier?: string;
  speed?: string;
  region?: string;
  web_searches?: number;
  web_fetches?: number;
  exactness?: "exact" | "lower_bound" | "estimated";
}

export interface TextPart {
  type: "text";
  id?: string;
  text: string;
  citations?: Citation[];
  state?: "streaming" | "done";
  blob?: BlobRef;
  metadata?: JsonObject;
}

export interface Citation {
  title?: string;
  url?: string;
  document?: string;
  cited_text?: string;
}

export interface ReasoningPart {
  type: "reasoning";
  id?: string;
  text: string;
  redacted?: boolean;
  state?: "streaming" | "done";
  duration_ms?: number;
  blob?: BlobRef;
  metadata?: JsonObject;
}

export interface Approval {
  id?: string;
  approved?: boolean;
  source?: string;
  reason?: string;
  metadata?: JsonObject;
}

export interface ToolResult {
  id: string;
  status?: ResultStatus;
  content?: Part[];
  structured?: Json;
  error_text?: string;
  exit_code?: number;
  preliminary?: boolean;
  completed_at?: string;
  duration_ms?: number;
  spilled_to?: string;
  sequence?: number;
  metadata?: JsonObject;
}

export interface ToolCallPart {
  type: "tool-call";
  id?: string;
  tool_call_id: string;
  tool_name: string;
  kind?: ToolKind;
  input?: Json;
  input_text?: string;
  input_blob?: BlobRef;
  state?: ToolState;
  title?: string;
  approval?: Approval;
  provider_executed?: boolean;
  parent_tool_call_id?: string;
  started_at?: string;
  child_session_id?: string;
  results?: ToolResult[];
  metadata?: JsonObject;
}

export interface FilePart {
  type: "file";
  id?: string;
  media_type: string;
  filename?: string;
  url?: string;
  data?: string;
  blob?: BlobRef;
  metadata?: JsonObject;
}

export interface SourceUrlPart {
  type: "source-url";
  id?: string;
  source_id: string;
  url: string;
  title?: string;
}

export interface SourceDocumentPart {
  type: "source-document";
  id?: string;
  source_id: string;
  media_type: string;
  title: string;
  filename?: string;
}

export interface DataPart {
  type: "data";
  id?: string;
  name: string;
  data: Json;
}

export interface UnknownPart {
  type: "unknown";
  id?: string;
  kind: string;
  data: Json;
}

export type Part =
  | TextPart
  | ReasoningPart
  | ToolCallPart
  | FilePart
  | SourceUrlPart
  | SourceDocumentPart
  | DataPart
  | UnknownPart;

export interface MessageError {
  text: string;
  kind?: string;
  status?: number;
}

export interface Cost {
  amount: string;
  currency?: string;
  kind?: "reported" | "priced";
  price_version?: string;
}

export interface Message {
  id: string;
  role: Role;
  parts?: Part[];
  origin?: Origin;
  created_at?: string;
  completed_at?: string;
  model?: string;
  requested_model?: string;
  response_id?: string;
  request_id?: string;
  stop_reason?: string;
  raw_stop_reason?: string;
  usage?: Usage;
  cost?: Cost;
  error?: MessageError;
  metadata?: JsonObject;
}

interface EventBase {
  position?: number;
  created_at?: string;
}

export interface CompactionEvent extends EventBase {
  type: "compaction";
  id: string;
  trigger?: string;
  summary_message_id?: string;
  kept_message_ids?: string[];
  replacement?: Message[];
  tokens_before?: number;
  tokens_after?: number;
  metadata?: JsonObject;
}

export interface RewindEvent extends EventBase {
  type: "rewind";
  id: string;
  to_message_id?: string;
  metadata?: JsonObject;
}

export interface InterruptEvent extends EventBase {
  type: "interrupt";
  id: string;
  during?: "answer" | "tool";
  message_id?: string;
  derived?: boolean;
}

export interface ErrorEvent extends EventBase {
  type: "error";
  id: string;
  error_text: string;
  kind?: string;
  status?: number;
  metadata?: JsonObject;
}

export interface RunMetadataEvent extends EventBase {
  type: "run-metadata";
  id: string;
  kind: string;
  data?: Json;
}

export interface RecordEvent extends EventBase {
  type: "record";
  id: string;
  kind: string;
  known?: boolean;
  data?: Json;
}

export interface ToolResultEvent extends EventBase {
  type: "tool-result";
  tool_call_id: string;
  result: ToolResult;
  tool_name?: string;
  message_id?: string;
  duplicate?: boolean;
}

export type HistoryEvent =
  | CompactionEvent
  | RewindEvent
  | InterruptEvent
  | ErrorEvent
  | RunMetadataEvent
  | RecordEvent
  | ToolResultEvent;

// ---- sessions ------------------------------------------------------------------------------------------------

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

// ---- changes as they happen: the data of the events of `/api/events` and `/api/sessions/{id}/events` --------------

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

// ---- the timeline --------------------------------------------------------------------------------------------

export interface Placement {
  position: number;
  message_id: string;
  turn: number | null;
  step: number | null;
  fate: Fate;
  fate_cause: string | null;
  /** US dollars; 0 where another session pays for the message, null where the price is unknown. */
  cost: number | null;
  /** Tool call id -> id of the session it started. */
  children: Record<string, string>;
  results: [result_id: string, position: number][];
}

export interface WindowPage {
  items: Message[];
  rows: Placement[];
  events: HistoryEvent[];
  has_before: boolean;
  has_after: boolean;
}

/** An event of a replay: of what it says, the page wants when it came. */
export interface ReplayedEvent {
  delay: number;
  event: { type: string; position?: number; created_at?: string };
}

export interface ReplayPage {
  items: ReplayedEvent[];
  before: number | null;
  after: number | null;
}

export interface Membership {
  session_id: string;
  message_id: string;
  position: number;
  parent_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  fate_cause?: string;
  pays?: boolean;
}

export interface MessageAnswer {
  message: Message;
  memberships: Membership[];
}

export interface RawRecord {
  source: string;
  offset: number;
  length: number;
  text: string;
  /** False: the bytes are not UTF-8, and `text` is a repaired reading of them. */
  exact: boolean;
}

export interface EventRecord {
  event: HistoryEvent;
  records: RawRecord[];
}

/** A list that is never so long that it needs pages. */
export interface Items<Item> {
  items: Item[];
}

// ---- search, usage, status -----------------------------------------------------------------------------------

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

// ---- files --------------------------------------------------------------------------------------------------------

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

export type UsageBy = "day" | "model" | "project" | "session" | "agent" | "subagent";

export interface UsageTotals {
  calls: number;
  unknown_calls: number;
  unpriced_calls: number;
  lower_bound_calls: number;
  tokens: number;
  input: number;
  cache_read: number;
  cache_write_5m: number;
  cache_write_1h: number;
  cache_write: number;
  output: number;
  reasoning: number;
  tool_prompt: number;
  cost: number | null;
  reported_cost: number | null;
}

export interface UsageRow {
  name: string | null;
  label: string | null;
  totals: UsageTotals;
}

export interface UsageAnswer {
  by: UsageBy;
  rows: UsageRow[];
  totals: UsageTotals;
  /** Sentences on what the sums are made of. */
  contains: string[];
  /** Sentences on what they do not contain. */
  missing: string[];
}

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
