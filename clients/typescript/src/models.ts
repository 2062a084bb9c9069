/** Made of the server's schemas by `python -m turnlog.server.typescript`; not to be edited. */

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

export type JsonObject = { [name: string]: Json };

/** What happened in one hour of one day of the week, over all weeks. */
export interface ActivityHour {
  weekday: number;
  hour: number;
  prompts: number;
  calls: number;
}

/** The colour of an agent's mark on light and on dark surfaces, as `#rrggbb`. */
export interface AgentColour {
  light: string;
  dark: string;
}

/** An agent, how it is shown, and how much of it there is. */
export interface AgentItem {
  agent: string;
  display_name: string;
  colour: AgentColour | null;
  sessions: number;
  subagents: number;
  sources: number;
  updated_at: string | null;
}

/** All agents of which there is anything. */
export interface AgentsResponse {
  items: AgentItem[];
}

/** Whether new sessions of the caller may be shown as the rule says. */
export interface AgreementBody {
  agrees: boolean;
}

/** The user's annotations of a session. A rebuild keeps them. */
export interface Annotations {
  title: string | null;
  starred: boolean;
  archived: boolean;
  tags: string[];
  note: string | null;
  pins: string[];
  changed_at: string | null;
}

/** What is said about a session from now on: what is left out stays as it is, null and nothing empty it. */
export interface AnnotationsBody {
  title?: string | null;
  starred?: boolean;
  archived?: boolean;
  tags?: string[];
  note?: string | null;
  pins?: string[];
}

/** Whether the machine may push. */
export interface AnswerBody {
  allow: boolean;
}

/** What the model said: its text parts joined as they are; empty where it only called tools (R-K13). */
export interface AnswerShown {
  type: "assistant";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  text?: string;
  reasoning?: string;
  model?: string;
  files?: FilePart[];
}

/** Who allowed or refused a call, and why, as far as the log says. */
export interface Approval {
  id?: string;
  approved?: boolean;
  source?: string;
  reason?: string;
  metadata?: JsonObject;
}

/** Something that somebody did; reads of one minute are one entry. */
export interface AuditEntry {
  actor: string;
  action: string;
  subject: string;
  owner: string;
  detail: string | null;
  times: number;
  last_at: string;
}

/** Entries of the audit log, and the names of what is in them. */
export interface AuditPage {
  items: AuditEntry[];
  names: Record<string, string>;
}

/** A large or binary content that lives outside the message body, by the SHA-256 of its bytes. */
export interface BlobRef {
  sha256: string;
  size: number;
  media_type?: string;
}

/** A budget; one of the same scope and subject gets this limit. */
export interface BudgetBody {
  scope: "team" | "project" | "person";
  subject?: string | null;
  limit: number;
}

/** Budgets that concern the caller. */
export interface Budgets {
  items: TeamBudget[];
  note?: string | null;
}

/** A place in the change sequence, and nothing else: `ready`, `resync`, `gone`. */
export interface ChangePlace {
  sequence: number;
}

/** A source the model gave for a passage of its text. */
export interface Citation {
  title?: string;
  url?: string;
  document?: string;
  cited_text?: string;
  start_index?: number;
  end_index?: number;
  metadata?: JsonObject;
}

/** The code of a link. */
export interface CodeBody {
  code: string;
}

/** All calls that ran commands with the same head, such as `git push`. */
export interface CommandFigures {
  command: string | null;
  calls: number;
  failed: number;
  duration_ms: number;
  median_ms: number | null;
  longest_ms: number | null;
  unknown_durations: number;
  longest_session_id: string | null;
  longest_message_id: string | null;
}

/** The model's context was replaced by a summary. The messages before it stay, with fate `compacted`. */
export interface CompactionEvent {
  type: "compaction";
  position?: number;
  created_at?: string;
  records?: Provenance[];
  id: string;
  trigger?: string;
  summary_message_id?: string;
  kept_message_ids?: string[];
  replacement?: Message[];
  tokens_before?: number;
  tokens_after?: number;
  metadata?: JsonObject;
}

/** How often an agent replaced its context by a summary. */
export interface CompactionFigures {
  agent: string;
  trigger: string | null;
  compactions: number;
  sessions: number;
  median_tokens_before: number | null;
}

/** The model's context was replaced by a summary. */
export interface CompactionShown {
  type: "compaction";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  trigger?: string;
  tokens_before?: number;
  tokens_after?: number;
}

/** One of the two periods, with its usage. */
export interface ComparedPeriod {
  since: string;
  until: string;
  sessions: number;
  totals: UsageTotals;
}

/** What one model or project used in both periods. */
export interface ComparedRow {
  name: string | null;
  label: string | null;
  earlier: UsageTotals;
  later: UsageTotals;
  cost_change: number | null;
}

/** The model calls of a session, in order. */
export interface ContextResponse {
  items: ContextStep[];
}

/** A model call of one session, with the size of what the model was sent. */
export interface ContextStep {
  position: number;
  message_id: string;
  turn: number | null;
  created_at: string | null;
  model: string | null;
  context: number | null;
  cached: number | null;
  output: number | null;
  is_compacted: boolean;
  fate: Fate;
}

/** Money for one or more model calls. */
export interface Cost {
  amount: string;
  currency?: string;
  kind?: "priced" | "reported";
  price_version?: string;
}

/** What one cause has of the change of the cost. */
export interface CostCause {
  cause: "cache_share" | "calls_per_session" | "models" | "output_share" | "price" | "sessions" | "tokens_per_call";
  cost_change: number;
  earlier: number | null;
  later: number | null;
}

/** JSON of an application, by `name`; AI SDK's `data-<name>`. */
export interface DataPart {
  type: "data";
  id?: string;
  provider?: ProviderData;
  metadata?: JsonObject;
  name: string;
  data: Json;
}

/** What the agent's harness put in (R-K12). */
export interface DeveloperShown {
  type: "developer";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  text?: string;
  origin?: string;
  images?: FilePart[];
  files?: FilePart[];
}

/** The machine that wants to join. */
export interface DeviceBody {
  machine: string;
  platform?: string;
}

/** The answer to a machine that wants to join. */
export interface DeviceCode {
  device_code: string;
  user_code: string;
  verification_uri: string;
  interval: number;
  expires_in: number;
}

/** The answer to the machine. */
export interface DeviceTokenBody {
  device_code: string;
}

/** A piece of the list of diagnostics. */
export interface DiagnosticPage {
  items: StoredDiagnostic[];
  next_cursor: string | null;
  total: number;
}

/** A file that calls changed. */
export interface EditedFile {
  path: string;
  edits: number;
  sessions: number;
  last_at: string | null;
}

/** A machine that wants to join. */
export interface Enrolment {
  machine: string;
  platform: string;
}

/** What went wrong: a word for programs, a sentence for people, and for bad parameters which. */
export interface ErrorBody {
  type: string;
  message: string;
  detail: FieldError[] | null;
}

/** Something failed outside any tool call: a provider, the agent, a hook. */
export interface ErrorEvent {
  type: "error";
  position?: number;
  created_at?: string;
  records?: Provenance[];
  id: string;
  error_text: string;
  kind?: string;
  status?: number;
  will_retry?: boolean;
  metadata?: JsonObject;
}

/** Errors outside of tool calls, as an agent records them: model calls that failed, limits, hooks. */
export interface ErrorFigures {
  agent: string;
  kind: string | null;
  label: string | null;
  status: number | null;
  is_limit: boolean;
  errors: number;
  sessions: number;
  last_at: string | null;
  last_session_id: string | null;
  last_message_id: string | null;
}

/** Every answer that is not a success. */
export interface ErrorResponse {
  error: ErrorBody;
}

/** Something failed outside any tool (R-K19). */
export interface ErrorShown {
  type: "error";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  error_text: string;
  kind?: string;
  status?: number;
}

/** An event, and what the log says of it. */
export interface EventRecord {
  event: ToolResultEvent | CompactionEvent | RewindEvent | InterruptEvent | ErrorEvent | RunMetadataEvent | RecordEvent;
  records: RecordText[];
}

/** The events at one position. */
export interface EventRecords {
  items: EventRecord[];
}

/** What `turnlog export --as` writes, in the order of its help. */
export type ExportFormat = "markdown" | "html" | "json" | "jsonl" | "uimessages" | "cassette" | "atif" | "otel" | "anthropic" | "openai-chat" | "openrouter" | "responses" | "gemini";

/** What became of a message in one session. Nothing is deleted because the agent moved on. */
export type Fate = "active" | "compacted" | "retracted" | "rewound" | "sidecar" | "superseded";

/** What is wrong with one parameter. */
export interface FieldError {
  field: string;
  reason: string;
}

/** Everything that was done to a file. */
export interface FileHistoryResponse {
  path: string;
  sessions: FileUseItem[];
  items: FileTouchItem[];
  next_cursor: string | null;
}

/** Where the lines of a file came from. */
export interface FileLinesResponse {
  path: string;
  lines: LineRange[];
}

/** An image, document or other file: inline bytes, a URL, or a blob of the store. Exactly one is set. */
export interface FilePart {
  type: "file";
  id?: string;
  provider?: ProviderData;
  metadata?: JsonObject;
  media_type: string;
  filename?: string;
  url?: string;
  data?: string;
  blob?: BlobRef;
}

/** A call that read or changed a file. */
export interface FileTouchItem {
  path: string;
  call: ToolCall;
  index: number;
  part: ToolCallPart | null;
}

/** What one session did to a file. */
export interface FileUseItem {
  session: FoundSession;
  calls: number;
  edits: number;
  kinds: string[];
  first_at: string | null;
  last_at: string | null;
}

/** Whether to remove, or only to say what would be removed. */
export interface ForgetBody {
  dry_run: boolean;
}

/** What was removed, or what would be. */
export interface ForgetResponse {
  forgotten: boolean;
  session_ids: string[];
  messages: number;
  files: string[];
  archived_bytes: number;
  shared: Record<string, number>;
}

/** Something that a session is called by, in which words of the query are. */
export interface FoundName {
  field: string;
  text: SnippetPiece[];
}

/** A session in which something was found. */
export interface FoundSession {
  id: string;
  agent: string;
  title: string | null;
  project: string | null;
}

/** Which agent gets the session. */
export interface HandoffBody {
  agent: string;
}

/** A session that was handed over. */
export interface HandoffResponse {
  session_id: string;
  losses: string[];
  notes: string[];
}

/** An agent that a session can be handed to. */
export interface HandoffTarget {
  agent: string;
  display_name: string;
  is_installed: boolean;
}

/** The agents that a session can be handed to, those that are installed first. */
export interface HandoffTargetsResponse {
  items: HandoffTarget[];
}

/** That a hook event is kept. */
export interface HookResponse {
  session_id: string;
}

/** An image that the model made (R-K14). */
export interface ImageShown {
  type: "image";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  image: FilePart;
}

/** An insights report. Each list is empty if there is nothing to report. */
export interface Insights {
  zone: string;
  granularity: "day" | "week";
  activity: ActivityHour[];
  undated_calls: number;
  projects: ProjectPeriod[];
  tools: ToolUsage[];
  commands: CommandFigures[];
  commands_found: number;
  files: EditedFile[];
  files_found: number;
  models: ModelFigures[];
  subagents: SubagentShare;
  compactions: CompactionFigures[];
  errors: ErrorFigures[];
  errors_found: number;
  notes: string[];
}

/** The user stopped the agent, while it was talking or while a tool ran. */
export interface InterruptEvent {
  type: "interrupt";
  position?: number;
  created_at?: string;
  records?: Provenance[];
  id: string;
  during?: "answer" | "tool";
  message_id?: string;
  derived?: boolean;
}

/** The user stopped the agent (R-K17). */
export interface InterruptShown {
  type: "interrupt";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  derived?: boolean;
}

/** The code of an invitation, and how its guest wants to be called. */
export interface InvitationBody {
  code: string;
  name: string;
}

/** The answer to a machine that has joined. */
export interface Joined {
  access_token: string;
  team: string;
  user: string;
  machine: string;
  user_name: string;
  machine_name: string;
}

/** Lines of a file, one after the other, that came from the same place. */
export interface LineRange {
  first: number;
  last: number;
  commit: string | null;
  link: OriginLink | null;
}

/** For how long a link works. */
export interface LinkBody {
  days?: number | null;
}

/** A machine that pushes sessions. */
export interface Machine {
  id: string;
  user: string;
  name: string;
  platform: string;
  created_at: string;
  seen_at: string | null;
}

/** Machines. */
export interface MachineList {
  items: Machine[];
}

/** A commit that a session made or pushed. */
export interface MadeCommit {
  hash: string;
  subject: string | null;
  branch: string | null;
  deed: "amended" | "committed" | "merged" | "opened" | "picked" | "pushed" | "reverted";
  message_id: string;
  position: number;
  turn: number | null;
  at: string | null;
}

/** Who makes the request. */
export interface Me {
  user: User | null;
  team: Team;
  role: "admin" | "member" | "owner" | "viewer";
  scopes: ("admin" | "push" | "read")[];
  machine: string | null;
  teams: TeamRole[];
  session?: string | null;
  machine_name?: string | null;
}

/** A person in a team. */
export interface Member {
  user: User;
  role: "admin" | "member" | "owner" | "viewer";
  joined_at: string;
}

/** Who is in the team. */
export interface Members {
  items: Member[];
}

/** The place of a message in one session. */
export interface Membership {
  session_id: string;
  message_id: string;
  position: number;
  parent_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  fate_cause?: string;
  is_billed?: boolean;
  records?: Provenance[];
}

/** Places of messages in their session. */
export interface MembershipsResponse {
  items: Membership[];
}

/** A role and ordered parts, as its own records said it. */
export interface Message {
  id: string;
  role: "assistant" | "developer" | "system" | "user";
  parts?: (TextPart | ReasoningPart | ToolCallPart | FilePart | SourceUrlPart | SourceDocumentPart | DataPart | UnknownPart)[];
  origin?: Origin;
  created_at?: string;
  completed_at?: string;
  updated_at?: string;
  model?: string;
  requested_model?: string;
  response_id?: string;
  request_id?: string;
  stop_reason?: "aborted" | "content_filter" | "context_window" | "error" | "length" | "pause" | "refusal" | "stop" | "tool_use";
  raw_stop_reason?: string;
  usage?: Usage;
  cost?: Cost;
  error?: MessageError;
  provider?: ProviderData;
  metadata?: JsonObject;
}

/** A failed model call that the agent logged in the place of an answer. */
export interface MessageError {
  text: string;
  kind?: string;
  status?: number;
}

/** A message with everything that is known of it, and its place in each session. */
export interface MessageResponse {
  message: Message;
  memberships: Membership[];
}

/** The facts about a message that depend on the session. */
export interface MessageRow {
  position: number;
  message_id: string;
  turn: number | null;
  step: number | null;
  fate: Fate;
  fate_cause: string | null;
  cost: number | null;
  children: Record<string, string>;
  results: [string, number][];
}

/** Messages of a session, in their order. */
export interface MessagesBody {
  messages?: Message[];
  retracted?: string[];
}

/** How one model was used. Figures per prompt are approximate: see `compared_sessions`. */
export interface ModelFigures {
  model: string | null;
  calls: number;
  sessions: number;
  cost: number | null;
  unpriced_calls: number;
  cache_share: number | null;
  output_per_call: number | null;
  is_lower_bound: boolean;
  failed_tool_calls: number;
  compared_sessions: number;
  cost_per_prompt: number | null;
  steps_per_prompt: number | null;
}

/** A model with the number of its calls. */
export interface ModelSummary {
  name: string;
  calls: number;
  sessions: number;
}

/** All models, the most called first. */
export interface ModelsResponse {
  items: ModelSummary[];
}

/** What the guest becomes, and for whom it is meant. */
export interface NewInvitation {
  role?: "owner" | "admin" | "member" | "viewer";
  note?: string;
}

/** A link with a secret, shown this once. */
export interface NewLink {
  address: string;
  id: string;
  expires_at: string | null;
}

/** Another team. */
export interface NewTeam {
  name: string;
}

/** A token, shown this once. */
export interface NewToken {
  token: string;
  item: TokenItem;
}

/** What a token is for, what it allows, and for how long. */
export interface NewTokenBody {
  name: string;
  scopes?: ("push" | "read" | "admin")[];
  days?: number | null;
}

/** The session that a link shows. */
export interface OpenedLink {
  session: string;
}

/** A pull or merge request that a session opened. */
export interface OpenedPullRequest {
  url: string;
  repository: string;
  number: number;
  message_id: string | null;
  position: number;
  turn: number | null;
  at: string | null;
}

/** Where a message that no model wrote came from. */
export type Origin = "command" | "command_output" | "compaction" | "harness" | "notification" | "prompt" | "shell" | "shell_output" | "subagent_prompt";

/** A session that a commit, pull request or line came from, and the turn in it. */
export interface OriginLink {
  session_id: string;
  agent: string;
  title: string | null;
  confidence: "content" | "exact" | "possible";
  reason: "amended" | "committed" | "merged" | "opened" | "picked" | "pushed" | "reverted" | "lines" | "note" | "rewritten" | "squashed" | "touched" | "trailer";
  message_id: string;
  position: number;
  at: string | null;
  turn: number | null;
  prompt: string | null;
  lines: number | null;
  of_lines: number | null;
}

/** A landmark of a session: a prompt, a compaction, a rewind, an error that is not a tool's, or a pinned message. */
export interface OutlineEntry {
  position: number;
  kind: string;
  text: string;
  message_id: string | null;
  turn: number | null;
  created_at: string | null;
  fate: Fate | null;
}

/** The landmarks of a session, in order. */
export interface OutlineResponse {
  items: OutlineEntry[];
}

/** Whose session it is; all None on one's own machine. */
export interface Ownership {
  user?: string;
  team?: string;
  task?: string;
  machine?: string;
}

/** A tool call for which the agent requests permission. */
export interface PermissionRequest {
  id: string;
  tool_call_id: string;
  tool_name: string | null;
  input: Json;
  reason: string | null;
}

/** A message, its place in the session, and what it cost there. */
export interface PlacedMessage {
  message: Message;
  membership: Membership;
  cost: Cost | null;
}

/** A working directory that sessions belong to. */
export interface Project {
  path: string;
  name: string;
}

/** A change of one project: what is left out stays as it is. */
export interface ProjectBody {
  path: string;
  name?: string | null;
  merged_into?: string | null;
}

/** What one project used in one day or week. */
export interface ProjectPeriod {
  period: string;
  project: string | null;
  label: string | null;
  sessions: number;
  calls: number;
  cost: number | null;
  unpriced_calls: number;
}

/** A project with its counts, subagents not included. */
export interface ProjectSummary {
  path: string;
  name: string;
  sessions: number;
  updated_at: string | null;
  merged: string[];
}

/** All projects, the last used first. */
export interface ProjectsResponse {
  items: ProjectSummary[];
}

/** Whether the agent may do what it asks leave for. */
export interface PromptAnswerBody {
  id: string;
  allow: boolean;
  reason?: string | null;
}

/** What the agent is asked. */
export interface PromptBody {
  text: string;
}

/** Whether a session goes on from the page. */
export interface PromptResponse {
  can_go_on: boolean;
  can_ask: boolean;
  running: boolean;
  problem: string | null;
  permission_requests: PermissionRequest[];
}

/** The place of a record: file and byte range, or table and key. */
export interface Provenance {
  source: string;
  offset?: number;
  length?: number;
  key?: string;
}

/** What a provider needs to take a message or part back unchanged. */
export interface ProviderData {
  name: string;
  model?: string;
  opaque?: JsonObject;
}

/** A person of whom somebody sees sessions. */
export interface Pusher {
  id: string;
  name: string;
  machines: string[];
  sessions: number;
}

/** People of whom the caller sees sessions. */
export interface Pushers {
  items: Pusher[];
}

/** Thinking that the model produced before or between its answers. */
export interface ReasoningPart {
  type: "reasoning";
  id?: string;
  provider?: ProviderData;
  metadata?: JsonObject;
  text: string;
  redacted?: boolean;
  state?: "done" | "streaming";
  duration_ms?: number;
  blob?: BlobRef;
}

/** Any other record of the log, by its own kind. `known` is False when this version does not know the kind. */
export interface RecordEvent {
  type: "record";
  position?: number;
  created_at?: string;
  records?: Provenance[];
  id: string;
  kind: string;
  known?: boolean;
  data?: Json;
}

/** A record as the agent wrote it. */
export interface RecordText {
  source: string;
  offset: number | null;
  length: number | null;
  text: string;
  exact: boolean;
}

/** Records in the order of the log. */
export interface RecordsResponse {
  items: RecordText[];
}

/** That a session came out of another. */
export interface Relationship {
  kind: "continuation" | "fork" | "subagent";
  parent_session_id: string;
  parent_tool_call_id?: string;
  parent_message_id?: string;
  inferred?: boolean;
}

/** A piece of a replay. */
export interface ReplayPage {
  items: ReplayedEvent[];
  before: number | null;
  after: number | null;
}

/** An event of a replay, and how long to wait before it. */
export interface ReplayedEvent {
  delay: number;
  event: UserShown | DeveloperShown | TurnStarted | ImageShown | AnswerShown | ToolCallShown | ToolResultShown | InterruptShown | ErrorShown | RunMetadataShown | ResponseMetadata | CompactionShown | RewindShown;
}

/** What a model call took and why it ended (R-K20). */
export interface ResponseMetadata {
  type: "response-metadata";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  stop_reason?: "aborted" | "content_filter" | "context_window" | "error" | "length" | "pause" | "refusal" | "stop" | "tool_use";
  raw_stop_reason?: string;
  usage?: Usage;
  cost?: Cost;
  model?: string;
  response_id?: string;
}

/** How the agent goes on with a session. */
export interface ResumeCommand {
  folder: string | null;
  command: string[];
  problem: string | null;
}

/** What a rule about age forgets. */
export interface Retention {
  sessions: number;
  people: number;
  oldest: string | null;
}

/** The user went back: what followed `to_message_id` left the active branch (None: back to the start). */
export interface RewindEvent {
  type: "rewind";
  position?: number;
  created_at?: string;
  records?: Provenance[];
  id: string;
  to_message_id?: string;
  metadata?: JsonObject;
}

/** The user went back; `message_id` is the last message that stayed (None: back to the start). */
export interface RewindShown {
  type: "rewind";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
}

/** What a member becomes. */
export interface RoleBody {
  role: "owner" | "admin" | "member" | "viewer";
}

/** The rules of a team. */
export interface Rules {
  highest_level: "full" | "metrics" | "redacted";
  visibility: "private" | "team";
  retention_days: number | null;
}

/** What changes of the rules; what is left out stays. */
export interface RulesBody {
  highest_level?: "metrics" | "redacted" | "full" | null;
  visibility?: "private" | "team" | null;
  retention_days?: number | null;
}

/** A piece of the messages of a run, in their order. */
export interface RunMessagePage {
  items: PlacedMessage[];
  next_cursor: string | null;
}

/** Facts about the run that belong to no message: totals, durations, modes, titles, settings. */
export interface RunMetadataEvent {
  type: "run-metadata";
  position?: number;
  created_at?: string;
  records?: Provenance[];
  id: string;
  kind: string;
  data?: Json;
}

/** A fact about the run (R-K19). */
export interface RunMetadataShown {
  type: "run-metadata";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  kind: string;
  data?: Json;
}

/** A piece of the list of runs. */
export interface RunPage {
  items: RunResponse[];
  next_cursor: string | null;
  total: number;
}

/** What was started through turnlog, and how it went; of the stored run only what others may use. */
export interface RunResponse {
  id: string;
  origin: "command" | "import" | "runtime";
  status: "cancelled" | "completed" | "failed" | "pending" | "running";
  agent: string | null;
  session_id: string | null;
  command: string[];
  cwd: string | null;
  prompt: string | null;
  model: string | null;
  system_prompt: string | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  exit_code: number | null;
  error: string | null;
  result: string | null;
  log_path: string | null;
  log_problem: string | null;
  tokens: number | null;
  usage: Usage | null;
  cost: number | null;
  tool_calls: number | null;
  pid: number | null;
  boot_id: string | null;
  metadata: JsonObject;
}

/** The hits of one session on one page. */
export interface SearchGroup {
  session: SearchedSession;
  hits: SearchHit[];
  names: FoundName[];
  matches: number | null;
  matches_is_exact: boolean;
}

/** A part of a message in which the query was found. */
export interface SearchHit {
  message_id: string;
  position: number;
  part: number;
  field: "file" | "input" | "output" | "reasoning" | "text";
  role: "assistant" | "developer" | "system" | "user";
  tool_name: string | null;
  created_at: string | null;
  snippet: SnippetPiece[];
  also_in: SessionPosition[];
}

/** How far search is behind the store. */
export interface SearchProgress {
  unindexed: number | null;
}

/** A page of sessions or hits; hits are grouped by session, in the order of their first hit. */
export interface SearchResponse {
  items: SearchGroup[];
  next_cursor: string | null;
  total: number | null;
  total_is_exact: boolean;
  counted: "hits" | "sessions";
  unindexed: number;
  suggestion: string | null;
  note: string | null;
}

/** A session that a search found. */
export interface SearchedSession {
  id: string;
  agent: string;
  title: string | null;
  project: string | null;
  project_name: string | null;
  user: string | null;
}

/** A session that a program writes. What is left out, or null, stays as it is. */
export interface SessionBody {
  external_id: string;
  agent?: string;
  title?: string | null;
  summary?: string | null;
  cwd?: string | null;
  git_branch?: string | null;
  git_commit?: string | null;
  created_at?: string | null;
  updated_at?: string | null;
  ownership?: Ownership | null;
  metadata?: JsonObject;
}

/** What a session holds, by its memberships: copies in forks included, superseded messages not. */
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

/** A session, what the user said about it, what it is doing, and what a list shows besides. */
export interface SessionItem {
  id: string;
  agent: string;
  external_id: string;
  title?: string;
  title_source?: "custom" | "generated" | "opening" | "prompt" | "summary" | "user";
  project?: Project;
  cwd?: string;
  worktree?: string;
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
  totals?: SessionTotal[];
  cost?: Cost;
  unpriced_calls?: number;
  reported_cost?: Cost;
  metadata?: JsonObject;
  annotations?: Annotations;
  state?: SessionState;
  resume?: ResumeCommand;
  first_prompt?: string;
  children?: number;
  cost_with_subagents?: Cost;
  unpriced_with_subagents?: number;
  active_ms?: number;
  upload_level?: "full" | "metrics" | "redacted";
}

/** A piece of the list of sessions. */
export interface SessionPage {
  items: SessionItem[];
  next_cursor: string | null;
  total: number | null;
  change_sequence: number;
}

/** A place in a session. */
export interface SessionPosition {
  session_id: string;
  position: number;
}

/** A session and its relatives. */
export interface SessionResponse {
  session: SessionItem;
  parent: SessionItem | null;
  children: SessionItem[];
  forks: SessionItem[];
  first_position: number | null;
  last_position: number | null;
  change_sequence: number;
}

/** Whose a session is, and who may read it besides. */
export interface SessionSharing {
  owner: string;
  machine: string | null;
  level: "full" | "metrics" | "none" | "redacted";
  visibility: "link" | "people" | "private" | "team";
  people: string[];
  links: ShareLink[];
}

/** The state of a session when the store was read, and the evidence for it. */
export interface SessionState {
  state: "done" | "killed" | "quiet" | "running" | "waiting";
  evidence: "answer" | "approval" | "closed" | "interrupt" | "nothing" | "open-call" | "open-turn" | "process" | "process-ended" | "question" | "silence" | "turn-ended";
  detail: string | null;
  since: string | null;
  quiet_at: string | null;
  doing: UnfinishedCall | null;
}

/** Tokens that a log counts for a whole session and one model, where it has none of single calls. */
export interface SessionTotal {
  model?: string;
  usage: Usage;
  calls?: number;
  task?: string;
  answer?: string;
}

/** What changed in a session: made of stored bodies, so this class only describes it. */
export interface SessionUpdate {
  sequence: number;
  session: SessionItem;
  items: Message[];
  rows: MessageRow[];
  events: (ToolResultEvent | CompactionEvent | RewindEvent | InterruptEvent | ErrorEvent | RunMetadataEvent | RecordEvent)[];
  gone_messages: string[];
  gone_events: [number, string][];
  children: SessionItem[];
}

/** The commits and pull requests of a session, in the order of its messages, each once. */
export interface SessionWork {
  commits: MadeCommit[];
  pull_requests: OpenedPullRequest[];
  unindexed: number;
}

/** Sessions that are new or of which anything has changed. */
export interface SessionsUpdate {
  sequence: number;
  items: SessionItem[];
}

/** A link with which anybody reads a session. */
export interface ShareLink {
  id: string;
  created_at: string;
  expires_at: string | null;
}

/** A session of the caller that others may read, too, or may when it comes again. Its subagents go with it. */
export interface SharedSession {
  id: string;
  visibility: "link" | "people" | "team";
  people: string[];
}

/** The sessions of the caller that others may read. */
export interface SharedSessions {
  items: SharedSession[];
  new_sessions: "private" | "team";
}

/** Who may read the session from now on. Links are made one by one. */
export interface SharingBody {
  visibility: "private" | "people" | "team";
  people?: string[];
}

/** How somebody can sign in. */
export interface SignInChoices {
  openid: string | null;
}

/** A link to the page, which signs one browser in. */
export interface SignInLinkResponse {
  address: string;
  file: string | null;
}

/** What signs a browser in. */
export interface SignInResponse {
  key: string;
}

/** A piece of a snippet; the marked ones are what was found. */
export interface SnippetPiece {
  text: string;
  marked: boolean;
}

/** A document the model cited. */
export interface SourceDocumentPart {
  type: "source-document";
  id?: string;
  provider?: ProviderData;
  metadata?: JsonObject;
  source_id: string;
  media_type: string;
  title: string;
  filename?: string;
}

/** A web page the model cited or found. */
export interface SourceUrlPart {
  type: "source-url";
  id?: string;
  provider?: ProviderData;
  metadata?: JsonObject;
  source_id: string;
  url: string;
  title?: string;
}

/** What the server is and does. */
export interface StatusResponse {
  version: string;
  sample: boolean;
  prompts: boolean;
  hub: boolean;
  change_sequence: number;
  unwritable: string | null;
  sync: SyncProgress;
  search: SearchProgress;
  store: StoreCounts;
}

/** How much a store contains, and when it was last synced. */
export interface StoreCounts {
  path: string;
  schema_version: number;
  file_size: number | null;
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

/** What could not be read, where, and why. */
export interface StoredDiagnostic {
  path: string;
  agent: string;
  session_id: string | null;
  offset: number;
  length: number;
  line: number | null;
  json_path: string | null;
  severity: string;
  reason: string;
}

/** A part of a message, and its id in the store. */
export interface StoredPart {
  id: string;
  message_id: string;
  sequence: number;
  part: TextPart | ReasoningPart | ToolCallPart | FilePart | SourceUrlPart | SourceDocumentPart | DataPart | UnknownPart;
}

/** What subagents have of the whole. */
export interface SubagentShare {
  sessions: number;
  calls: number;
  total_calls: number;
  cost: number | null;
  total_cost: number | null;
  share: number | null;
}

/** What some people used. */
export interface Sums {
  people?: number;
  sessions?: number | null;
  calls?: number;
  unknown_calls?: number;
  unpriced_calls?: number;
  tokens?: number;
  output?: number;
  cost?: number | null;
}

/** A file that the last pass could not read. */
export interface SyncProblem {
  path: string;
  reason: string;
}

/** How far the background has read the logs. */
export interface SyncProgress {
  state: string;
  phase: string | null;
  done: number;
  total: number;
  passes: number;
  started_at: string | null;
  ended_at: string | null;
  error: string | null;
  problems: SyncProblem[];
}

/** A task: sessions that belong together, of one or several agents. */
export interface Task {
  id: string;
  name: string;
  user: string | null;
  sessions: number;
  created_at: string | null;
  updated_at: string | null;
}

/** A task to create. */
export interface TaskBody {
  name: string;
  id?: string | null;
}

/** Another name of a task. */
export interface TaskNameBody {
  name: string;
}

/** All tasks, the last used first. */
export interface TasksResponse {
  items: Task[];
}

/** A team. */
export interface Team {
  id: string;
  name: string;
  smallest_group: number;
}

/** A team that the caller is in. */
export interface TeamBody {
  team: string;
}

/** A budget, and what of it the caller may know of the running month. */
export interface TeamBudget {
  id: string;
  scope: "person" | "project" | "team";
  subject: string | null;
  limit: number;
  month: string;
  spent?: number | null;
  unpriced_calls?: number | null;
  state?: "exceeded" | "nearly spent" | "within" | null;
}

/** What changes of the team; what is left out stays. */
export interface TeamChange {
  name?: string | null;
  smallest_group?: number | null;
}

/** A team that the caller is in, and as what. */
export interface TeamRole {
  team: Team;
  role: "admin" | "member" | "owner" | "viewer";
}

/** The usage of one person, project, model or day. */
export interface TeamRow {
  name: string | null;
  sums: Sums;
}

/** The rules of the team. */
export interface TeamRules {
  rules: Rules;
  agreed: boolean;
}

/** What a team used. */
export interface TeamUsage {
  by: "day" | "model" | "person" | "project";
  smallest_group: number;
  rows: TeamRow[];
  folded: Sums | null;
  totals: Sums | null;
  counted_at: string;
}

/** Text that was said. In a stored body `text` is a preview when `blob` names the whole. */
export interface TextPart {
  type: "text";
  id?: string;
  provider?: ProviderData;
  metadata?: JsonObject;
  text: string;
  citations?: Citation[];
  state?: "done" | "streaming";
  blob?: BlobRef;
}

/** A token, an invitation or a browser, without its secret. */
export interface TokenItem {
  id: string;
  kind: "attempt" | "browser" | "device" | "invitation" | "link" | "machine" | "personal";
  user: string | null;
  name: string;
  scopes: string[];
  role: "admin" | "member" | "owner" | "viewer" | null;
  machine: string | null;
  created_at: string;
  expires_at: string | null;
  used_at: string | null;
}

/** Tokens, invitations or browsers. */
export interface Tokens {
  items: TokenItem[];
}

/** A tool call in lists, without its input and output, which `Store.message` has. */
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

/** A tool call, and the message that made it. */
export interface ToolCallBody {
  message_id: string;
  call: ToolCallPart;
}

/** A piece of the list of tool calls. */
export interface ToolCallPage {
  items: ToolCall[];
  next_cursor: string | null;
}

/** One invocation of a tool with everything that came back. */
export interface ToolCallPart {
  type: "tool-call";
  id?: string;
  provider?: ProviderData;
  metadata?: JsonObject;
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
}

/** A call, with the arguments exactly as the model wrote them (R-K15). */
export interface ToolCallShown {
  type: "tool-call";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  tool_call_id: string;
  tool_name: string;
  arguments: string;
  kind?: ToolKind;
  title?: string;
  child_session_id?: string;
}

/** What a tool does, whatever its agent calls it (the kinds of the Agent Client Protocol). */
export type ToolKind = "ask" | "delete" | "edit" | "execute" | "fetch" | "move" | "other" | "read" | "search" | "subagent" | "switch_mode" | "think";

/** One answer to a tool call. A call may have several (async launch and report, preliminary and final). */
export interface ToolResult {
  id: string;
  status?: "aborted" | "denied" | "error" | "success";
  content?: (TextPart | ReasoningPart | ToolCallPart | FilePart | SourceUrlPart | SourceDocumentPart | DataPart | UnknownPart)[];
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

/** A result arrived. `message_id` is None for an orphan: no call of that id is known. */
export interface ToolResultEvent {
  type: "tool-result";
  position?: number;
  created_at?: string;
  records?: Provenance[];
  tool_call_id: string;
  result: ToolResult;
  tool_name?: string;
  message_id?: string;
  approval?: Approval;
  duplicate?: boolean;
}

/** A result where it arrived: `status` as two-valued as a screen needs it, `outcome` as it is (R-K16). */
export interface ToolResultShown {
  type: "tool-result";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  tool_call_id: string;
  result: string;
  status: "error" | "success";
  outcome: "aborted" | "denied" | "error" | "success";
  tool_name?: string;
  images?: FilePart[];
  error_text?: string;
  exit_code?: number;
  preliminary?: boolean;
  duplicate?: boolean;
  structured?: Json;
  metadata?: JsonObject;
}

/** The state of a call. The last four are final, though a later result may still replace a final state. */
export type ToolState = "aborted" | "approval-requested" | "approval-responded" | "input-available" | "input-streaming" | "output-available" | "output-denied" | "output-error";

/** How often a tool was called, and the outcomes. */
export interface ToolUsage {
  tool_name: string;
  kind: string;
  calls: number;
  failed: number;
  denied: number;
  aborted: number;
  unanswered: number;
  duration_ms: number;
  unknown_durations: number;
}

/** All tools, the most called first. */
export interface ToolsResponse {
  items: ToolUsage[];
}

/** A file, with counts of what was done to it. */
export interface TouchedFile {
  path: string;
  sessions: number;
  calls: number;
  edits: number;
  last_at: string | null;
}

/** Files, the last touched first. */
export interface TouchedFiles {
  items: TouchedFile[];
}

/** A session in the trash. */
export interface TrashedSession {
  id: string;
  title: string | null;
  trashed_at: string;
  forgotten_at: string;
}

/** What somebody has in the trash. */
export interface TrashedSessions {
  items: TrashedSession[];
}

/** The model begins to answer (R-K18). */
export interface TurnStarted {
  type: "turn-start";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
}

/** What these UI messages cannot say. */
export interface UIMessageLoss {
  feature: string;
  path: string;
  reason: string;
}

/** A piece of a session as AI SDK's UI messages: made of stored bodies, so this class only describes it. */
export interface UIMessagePage {
  messages: JsonObject[];
  has_more: boolean;
  next_cursor: string | null;
  losses: UIMessageLoss[];
}

/** A tool call without a final result. */
export interface UnfinishedCall {
  tool_call_id: string;
  tool_name: string;
  kind: string;
  state: string;
  started_at: string | null;
  summary: string | null;
}

/** A block whose kind this version does not know: `kind` is its own word for itself, `data` its exact JSON. */
export interface UnknownPart {
  type: "unknown";
  id?: string;
  provider?: ProviderData;
  metadata?: JsonObject;
  kind: string;
  data: Json;
}

/** Tokens of one model call. */
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
  exactness?: "estimated" | "exact" | "lower_bound";
  requests?: Usage[];
}

/** One of the five-hour windows of Claude's limits. What it will be is known only of the one that is running. */
export interface UsageBlock {
  start: string;
  end: string;
  is_running: boolean;
  tokens_per_minute: number | null;
  cost_per_hour: number | null;
  projected_tokens: number | null;
  projected_cost: number | null;
}

/** What the running day, week or month has cost of the user's budget for it, whatever the report is about. */
export interface UsageBudget {
  period: "day" | "month" | "week";
  name: string;
  limit: number;
  spent: number;
  unpriced_calls: number;
  is_exceeded: boolean;
}

/** Two periods beside each other. */
export interface UsageComparison {
  zone: string;
  earlier: ComparedPeriod;
  later: ComparedPeriod;
  cost_change: number | null;
  causes: CostCause[];
  models: ComparedRow[];
  projects: ComparedRow[];
  missing: string[];
}

/** What one thing, such as a model, has of the usage of a row. */
export interface UsagePart {
  name: string | null;
  label: string | null;
  totals: UsageTotals;
}

/** Usage by something, and in all. */
export interface UsageReport {
  by: "agent" | "block" | "day" | "hour" | "model" | "month" | "project" | "session" | "subagent" | "week";
  rows: UsageRow[];
  totals: UsageTotals;
  contains: string[];
  missing: string[];
  zone: string;
  then_by: "agent" | "block" | "day" | "hour" | "model" | "month" | "project" | "session" | "subagent" | "week" | null;
  budgets: UsageBudget[];
  active_ms: number | null;
}

/** The usage of one hour, day, week, month, block, model, project, session, agent or subagent. */
export interface UsageRow {
  name: string | null;
  label: string | null;
  totals: UsageTotals;
  parts: UsagePart[];
  block: UsageBlock | null;
  active_ms: number | null;
}

/** A sum of usages that says what it does not contain. */
export interface UsageTotal {
  usage?: Usage;
  calls?: number;
  unknown_calls?: number;
  covered_calls?: number;
}

/** Tokens and US dollars of many model calls, and how many calls these sums do not contain. */
export interface UsageTotals {
  calls: number;
  unknown_calls: number;
  covered_calls: number;
  session_totals: number;
  unpriced_calls: number;
  lower_bound_calls: number;
  estimated_calls: number;
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

/** A person. */
export interface User {
  id: string;
  name: string;
  email: string | null;
}

/** What the user said: texts joined by newlines (R-K12). */
export interface UserShown {
  type: "user";
  position?: number;
  created_at?: string;
  message_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  text?: string;
  images?: FilePart[];
  files?: FilePart[];
}

/** A piece of a session: made of stored frames, so this class only describes it. */
export interface WindowPage {
  items: Message[];
  rows: MessageRow[];
  events: (ToolResultEvent | CompactionEvent | RewindEvent | InterruptEvent | ErrorEvent | RunMetadataEvent | RecordEvent)[];
  has_before: boolean;
  has_after: boolean;
}
