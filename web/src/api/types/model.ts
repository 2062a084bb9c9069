/** What a history is: messages, their parts, and events. */

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

export type JsonObject = { [name: string]: Json };

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
