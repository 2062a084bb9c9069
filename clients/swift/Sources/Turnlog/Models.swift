// Made of the API's schemas by `python -m turnlog.hub.client_models`; not to be edited.

/// Any JSON.
public enum JSONValue: Codable, Equatable, Sendable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

/// Values of the API. They are in a namespace, because Swift has a `Task` of its own.
public enum Turnlog {
    /// What happened in one hour of one day of the week, over all weeks.
    public struct ActivityHour: Codable, Equatable, Sendable {
        public var weekday: Int
        public var hour: Int
        public var prompts: Int
        public var calls: Int

        public enum CodingKeys: String, CodingKey {
            case weekday
            case hour
            case prompts
            case calls
        }
    }

    /// The colour of an agent's mark on light and on dark surfaces, as `#rrggbb`.
    public struct AgentColour: Codable, Equatable, Sendable {
        public var light: String
        public var dark: String

        public enum CodingKeys: String, CodingKey {
            case light
            case dark
        }
    }

    /// An agent, how it is shown, and how much of it there is.
    public struct AgentItem: Codable, Equatable, Sendable {
        public var agent: String
        public var displayName: String
        public var colour: AgentColour?
        public var sessions: Int
        public var subagents: Int
        public var sources: Int
        public var updatedAt: String?

        public enum CodingKeys: String, CodingKey {
            case agent
            case displayName = "display_name"
            case colour
            case sessions
            case subagents
            case sources
            case updatedAt = "updated_at"
        }
    }

    /// All agents of which there is anything.
    public struct AgentsResponse: Codable, Equatable, Sendable {
        public var items: [AgentItem]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// Whether new sessions of the caller may be shown as the rule says.
    public struct AgreementBody: Codable, Equatable, Sendable {
        public var agrees: Bool

        public enum CodingKeys: String, CodingKey {
            case agrees
        }
    }

    /// The user's annotations of a session. A rebuild keeps them.
    public struct Annotations: Codable, Equatable, Sendable {
        public var title: String?
        public var starred: Bool
        public var archived: Bool
        public var tags: [String]
        public var note: String?
        public var pins: [String]
        public var changedAt: String?

        public enum CodingKeys: String, CodingKey {
            case title
            case starred
            case archived
            case tags
            case note
            case pins
            case changedAt = "changed_at"
        }
    }

    /// What is said about a session from now on: what is left out stays as it is, null and nothing empty it.
    public struct AnnotationsBody: Codable, Equatable, Sendable {
        public var title: String?
        public var starred: Bool?
        public var archived: Bool?
        public var tags: [String]?
        public var note: String?
        public var pins: [String]?

        public enum CodingKeys: String, CodingKey {
            case title
            case starred
            case archived
            case tags
            case note
            case pins
        }
    }

    /// Whether the machine may push.
    public struct AnswerBody: Codable, Equatable, Sendable {
        public var allow: Bool

        public enum CodingKeys: String, CodingKey {
            case allow
        }
    }

    /// What the model said: its text parts joined as they are; empty where it only called tools (R-K13).
    public struct AnswerShown: Codable, Equatable, Sendable {
        /// One of: assistant.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var text: String?
        public var reasoning: String?
        public var model: String?
        public var files: [FilePart]?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case text
            case reasoning
            case model
            case files
        }
    }

    /// Who allowed or refused a call, and why, as far as the log says.
    public struct Approval: Codable, Equatable, Sendable {
        public var id: String?
        public var approved: Bool?
        public var source: String?
        public var reason: String?
        public var metadata: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case id
            case approved
            case source
            case reason
            case metadata
        }
    }

    /// Something that somebody did; reads of one minute are one entry.
    public struct AuditEntry: Codable, Equatable, Sendable {
        public var actor: String
        public var action: String
        public var subject: String
        public var owner: String
        public var detail: String?
        public var times: Int
        public var lastAt: String

        public enum CodingKeys: String, CodingKey {
            case actor
            case action
            case subject
            case owner
            case detail
            case times
            case lastAt = "last_at"
        }
    }

    /// Entries of the audit log, and the names of what is in them.
    public struct AuditPage: Codable, Equatable, Sendable {
        public var items: [AuditEntry]
        public var names: [String: String]

        public enum CodingKeys: String, CodingKey {
            case items
            case names
        }
    }

    /// A large or binary content that lives outside the message body, by the SHA-256 of its bytes.
    public struct BlobRef: Codable, Equatable, Sendable {
        public var sha256: String
        public var size: Int
        public var mediaType: String?

        public enum CodingKeys: String, CodingKey {
            case sha256
            case size
            case mediaType = "media_type"
        }
    }

    /// A budget; one of the same scope and subject gets this limit.
    public struct BudgetBody: Codable, Equatable, Sendable {
        /// One of: team, project, person.
        public var scope: String
        public var subject: String?
        public var limit: Double

        public enum CodingKeys: String, CodingKey {
            case scope
            case subject
            case limit
        }
    }

    /// Budgets that concern the caller.
    public struct Budgets: Codable, Equatable, Sendable {
        public var items: [TeamBudget]
        public var note: String?

        public enum CodingKeys: String, CodingKey {
            case items
            case note
        }
    }

    /// A place in the change sequence, and nothing else: `ready`, `resync`, `gone`.
    public struct ChangePlace: Codable, Equatable, Sendable {
        public var sequence: Int

        public enum CodingKeys: String, CodingKey {
            case sequence
        }
    }

    /// A source the model gave for a passage of its text.
    public struct Citation: Codable, Equatable, Sendable {
        public var title: String?
        public var url: String?
        public var document: String?
        public var citedText: String?
        public var startIndex: Int?
        public var endIndex: Int?
        public var metadata: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case title
            case url
            case document
            case citedText = "cited_text"
            case startIndex = "start_index"
            case endIndex = "end_index"
            case metadata
        }
    }

    /// The code of a link.
    public struct CodeBody: Codable, Equatable, Sendable {
        public var code: String

        public enum CodingKeys: String, CodingKey {
            case code
        }
    }

    /// All calls that ran commands with the same head, such as `git push`.
    public struct CommandFigures: Codable, Equatable, Sendable {
        public var command: String?
        public var calls: Int
        public var failed: Int
        public var durationMs: Int
        public var medianMs: Double?
        public var longestMs: Int?
        public var unknownDurations: Int
        public var longestSessionId: String?
        public var longestMessageId: String?

        public enum CodingKeys: String, CodingKey {
            case command
            case calls
            case failed
            case durationMs = "duration_ms"
            case medianMs = "median_ms"
            case longestMs = "longest_ms"
            case unknownDurations = "unknown_durations"
            case longestSessionId = "longest_session_id"
            case longestMessageId = "longest_message_id"
        }
    }

    /// The model's context was replaced by a summary. The messages before it stay, with fate `compacted`.
    public struct CompactionEvent: Codable, Equatable, Sendable {
        /// One of: compaction.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var records: [Provenance]?
        public var id: String
        public var trigger: String?
        public var summaryMessageId: String?
        public var keptMessageIds: [String]?
        public var replacement: [Message]?
        public var tokensBefore: Int?
        public var tokensAfter: Int?
        public var metadata: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case records
            case id
            case trigger
            case summaryMessageId = "summary_message_id"
            case keptMessageIds = "kept_message_ids"
            case replacement
            case tokensBefore = "tokens_before"
            case tokensAfter = "tokens_after"
            case metadata
        }
    }

    /// How often an agent replaced its context by a summary.
    public struct CompactionFigures: Codable, Equatable, Sendable {
        public var agent: String
        public var trigger: String?
        public var compactions: Int
        public var sessions: Int
        public var medianTokensBefore: Double?

        public enum CodingKeys: String, CodingKey {
            case agent
            case trigger
            case compactions
            case sessions
            case medianTokensBefore = "median_tokens_before"
        }
    }

    /// The model's context was replaced by a summary.
    public struct CompactionShown: Codable, Equatable, Sendable {
        /// One of: compaction.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var trigger: String?
        public var tokensBefore: Int?
        public var tokensAfter: Int?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case trigger
            case tokensBefore = "tokens_before"
            case tokensAfter = "tokens_after"
        }
    }

    /// One of the two periods, with its usage.
    public struct ComparedPeriod: Codable, Equatable, Sendable {
        public var since: String
        public var until: String
        public var sessions: Int
        public var totals: UsageTotals

        public enum CodingKeys: String, CodingKey {
            case since
            case until
            case sessions
            case totals
        }
    }

    /// What one model or project used in both periods.
    public struct ComparedRow: Codable, Equatable, Sendable {
        public var name: String?
        public var label: String?
        public var earlier: UsageTotals
        public var later: UsageTotals
        public var costChange: Double?

        public enum CodingKeys: String, CodingKey {
            case name
            case label
            case earlier
            case later
            case costChange = "cost_change"
        }
    }

    /// The model calls of a session, in order.
    public struct ContextResponse: Codable, Equatable, Sendable {
        public var items: [ContextStep]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// A model call of one session, with the size of what the model was sent.
    public struct ContextStep: Codable, Equatable, Sendable {
        public var position: Int
        public var messageId: String
        public var turn: Int?
        public var createdAt: String?
        public var model: String?
        public var context: Int?
        public var cached: Int?
        public var output: Int?
        public var isCompacted: Bool
        public var fate: Fate

        public enum CodingKeys: String, CodingKey {
            case position
            case messageId = "message_id"
            case turn
            case createdAt = "created_at"
            case model
            case context
            case cached
            case output
            case isCompacted = "is_compacted"
            case fate
        }
    }

    /// Money for one or more model calls.
    public struct Cost: Codable, Equatable, Sendable {
        public var amount: String
        public var currency: String?
        /// One of: priced, reported.
        public var kind: String?
        public var priceVersion: String?

        public enum CodingKeys: String, CodingKey {
            case amount
            case currency
            case kind
            case priceVersion = "price_version"
        }
    }

    /// What one cause has of the change of the cost.
    public struct CostCause: Codable, Equatable, Sendable {
        /// One of: cache_share, calls_per_session, models, output_share, price, sessions, tokens_per_call.
        public var cause: String
        public var costChange: Double
        public var earlier: Double?
        public var later: Double?

        public enum CodingKeys: String, CodingKey {
            case cause
            case costChange = "cost_change"
            case earlier
            case later
        }
    }

    /// JSON of an application, by `name`; AI SDK's `data-<name>`.
    public struct DataPart: Codable, Equatable, Sendable {
        /// One of: data.
        public var type: String
        public var id: String?
        public var provider: ProviderData?
        public var metadata: [String: JSONValue]?
        public var name: String
        public var data: JSONValue

        public enum CodingKeys: String, CodingKey {
            case type
            case id
            case provider
            case metadata
            case name
            case data
        }
    }

    /// What the agent's harness put in (R-K12).
    public struct DeveloperShown: Codable, Equatable, Sendable {
        /// One of: developer.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var text: String?
        public var origin: String?
        public var images: [FilePart]?
        public var files: [FilePart]?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case text
            case origin
            case images
            case files
        }
    }

    /// The machine that wants to join.
    public struct DeviceBody: Codable, Equatable, Sendable {
        public var machine: String
        public var platform: String?

        public enum CodingKeys: String, CodingKey {
            case machine
            case platform
        }
    }

    /// The answer to a machine that wants to join.
    public struct DeviceCode: Codable, Equatable, Sendable {
        public var deviceCode: String
        public var userCode: String
        public var verificationUri: String
        public var interval: Int
        public var expiresIn: Int

        public enum CodingKeys: String, CodingKey {
            case deviceCode = "device_code"
            case userCode = "user_code"
            case verificationUri = "verification_uri"
            case interval
            case expiresIn = "expires_in"
        }
    }

    /// The answer to the machine.
    public struct DeviceTokenBody: Codable, Equatable, Sendable {
        public var deviceCode: String

        public enum CodingKeys: String, CodingKey {
            case deviceCode = "device_code"
        }
    }

    /// A piece of the list of diagnostics.
    public struct DiagnosticPage: Codable, Equatable, Sendable {
        public var items: [StoredDiagnostic]
        public var nextCursor: String?
        public var total: Int

        public enum CodingKeys: String, CodingKey {
            case items
            case nextCursor = "next_cursor"
            case total
        }
    }

    /// A file that calls changed.
    public struct EditedFile: Codable, Equatable, Sendable {
        public var path: String
        public var edits: Int
        public var sessions: Int
        public var lastAt: String?

        public enum CodingKeys: String, CodingKey {
            case path
            case edits
            case sessions
            case lastAt = "last_at"
        }
    }

    /// A machine that wants to join.
    public struct Enrolment: Codable, Equatable, Sendable {
        public var machine: String
        public var platform: String

        public enum CodingKeys: String, CodingKey {
            case machine
            case platform
        }
    }

    /// What went wrong: a word for programs, a sentence for people, and for bad parameters which.
    public struct ErrorBody: Codable, Equatable, Sendable {
        public var type: String
        public var message: String
        public var detail: [FieldError]?

        public enum CodingKeys: String, CodingKey {
            case type
            case message
            case detail
        }
    }

    /// Something failed outside any tool call: a provider, the agent, a hook.
    public struct ErrorEvent: Codable, Equatable, Sendable {
        /// One of: error.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var records: [Provenance]?
        public var id: String
        public var errorText: String
        public var kind: String?
        public var status: Int?
        public var willRetry: Bool?
        public var metadata: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case records
            case id
            case errorText = "error_text"
            case kind
            case status
            case willRetry = "will_retry"
            case metadata
        }
    }

    /// Errors outside of tool calls, as an agent records them: model calls that failed, limits, hooks.
    public struct ErrorFigures: Codable, Equatable, Sendable {
        public var agent: String
        public var kind: String?
        public var label: String?
        public var status: Int?
        public var isLimit: Bool
        public var errors: Int
        public var sessions: Int
        public var lastAt: String?
        public var lastSessionId: String?
        public var lastMessageId: String?

        public enum CodingKeys: String, CodingKey {
            case agent
            case kind
            case label
            case status
            case isLimit = "is_limit"
            case errors
            case sessions
            case lastAt = "last_at"
            case lastSessionId = "last_session_id"
            case lastMessageId = "last_message_id"
        }
    }

    /// Every answer that is not a success.
    public struct ErrorResponse: Codable, Equatable, Sendable {
        public var error: ErrorBody

        public enum CodingKeys: String, CodingKey {
            case error
        }
    }

    /// Something failed outside any tool (R-K19).
    public struct ErrorShown: Codable, Equatable, Sendable {
        /// One of: error.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var errorText: String
        public var kind: String?
        public var status: Int?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case errorText = "error_text"
            case kind
            case status
        }
    }

    /// An event, and what the log says of it.
    public struct EventRecord: Codable, Equatable, Sendable {
        public var event: Event
        public var records: [RecordText]

        public enum CodingKeys: String, CodingKey {
            case event
            case records
        }
    }

    /// The events at one position.
    public struct EventRecords: Codable, Equatable, Sendable {
        public var items: [EventRecord]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// What `turnlog export --as` writes, in the order of its help.
    public struct ExportFormat: RawRepresentable, Codable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public static let markdown = ExportFormat(rawValue: "markdown")
        public static let html = ExportFormat(rawValue: "html")
        public static let json = ExportFormat(rawValue: "json")
        public static let jsonl = ExportFormat(rawValue: "jsonl")
        public static let uimessages = ExportFormat(rawValue: "uimessages")
        public static let cassette = ExportFormat(rawValue: "cassette")
        public static let atif = ExportFormat(rawValue: "atif")
        public static let otel = ExportFormat(rawValue: "otel")
        public static let anthropic = ExportFormat(rawValue: "anthropic")
        public static let openaiChat = ExportFormat(rawValue: "openai-chat")
        public static let openrouter = ExportFormat(rawValue: "openrouter")
        public static let responses = ExportFormat(rawValue: "responses")
        public static let gemini = ExportFormat(rawValue: "gemini")
    }

    /// What became of a message in one session. Nothing is deleted because the agent moved on.
    public struct Fate: RawRepresentable, Codable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public static let active = Fate(rawValue: "active")
        public static let compacted = Fate(rawValue: "compacted")
        public static let retracted = Fate(rawValue: "retracted")
        public static let rewound = Fate(rawValue: "rewound")
        public static let sidecar = Fate(rawValue: "sidecar")
        public static let superseded = Fate(rawValue: "superseded")
    }

    /// What is wrong with one parameter.
    public struct FieldError: Codable, Equatable, Sendable {
        public var field: String
        public var reason: String

        public enum CodingKeys: String, CodingKey {
            case field
            case reason
        }
    }

    /// Everything that was done to a file.
    public struct FileHistoryResponse: Codable, Equatable, Sendable {
        public var path: String
        public var sessions: [FileUseItem]
        public var items: [FileTouchItem]
        public var nextCursor: String?

        public enum CodingKeys: String, CodingKey {
            case path
            case sessions
            case items
            case nextCursor = "next_cursor"
        }
    }

    /// Where the lines of a file came from.
    public struct FileLinesResponse: Codable, Equatable, Sendable {
        public var path: String
        public var lines: [LineRange]

        public enum CodingKeys: String, CodingKey {
            case path
            case lines
        }
    }

    /// An image, document or other file: inline bytes, a URL, or a blob of the store. Exactly one is set.
    public struct FilePart: Codable, Equatable, Sendable {
        /// One of: file.
        public var type: String
        public var id: String?
        public var provider: ProviderData?
        public var metadata: [String: JSONValue]?
        public var mediaType: String
        public var filename: String?
        public var url: String?
        public var data: String?
        public var blob: BlobRef?

        public enum CodingKeys: String, CodingKey {
            case type
            case id
            case provider
            case metadata
            case mediaType = "media_type"
            case filename
            case url
            case data
            case blob
        }
    }

    /// A call that read or changed a file.
    public struct FileTouchItem: Codable, Equatable, Sendable {
        public var path: String
        public var call: ToolCall
        public var index: Int
        public var part: ToolCallPart?

        public enum CodingKeys: String, CodingKey {
            case path
            case call
            case index
            case part
        }
    }

    /// What one session did to a file.
    public struct FileUseItem: Codable, Equatable, Sendable {
        public var session: FoundSession
        public var calls: Int
        public var edits: Int
        public var kinds: [String]
        public var firstAt: String?
        public var lastAt: String?

        public enum CodingKeys: String, CodingKey {
            case session
            case calls
            case edits
            case kinds
            case firstAt = "first_at"
            case lastAt = "last_at"
        }
    }

    /// Whether to remove, or only to say what would be removed.
    public struct ForgetBody: Codable, Equatable, Sendable {
        public var dryRun: Bool

        public enum CodingKeys: String, CodingKey {
            case dryRun = "dry_run"
        }
    }

    /// What was removed, or what would be.
    public struct ForgetResponse: Codable, Equatable, Sendable {
        public var forgotten: Bool
        public var sessionIds: [String]
        public var messages: Int
        public var files: [String]
        public var archivedBytes: Int
        public var shared: [String: Int]

        public enum CodingKeys: String, CodingKey {
            case forgotten
            case sessionIds = "session_ids"
            case messages
            case files
            case archivedBytes = "archived_bytes"
            case shared
        }
    }

    /// Something that a session is called by, in which words of the query are.
    public struct FoundName: Codable, Equatable, Sendable {
        public var field: String
        public var text: [SnippetPiece]

        public enum CodingKeys: String, CodingKey {
            case field
            case text
        }
    }

    /// A session in which something was found.
    public struct FoundSession: Codable, Equatable, Sendable {
        public var id: String
        public var agent: String
        public var title: String?
        public var project: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case agent
            case title
            case project
        }
    }

    /// Which agent gets the session.
    public struct HandoffBody: Codable, Equatable, Sendable {
        public var agent: String

        public enum CodingKeys: String, CodingKey {
            case agent
        }
    }

    /// A session that was handed over.
    public struct HandoffResponse: Codable, Equatable, Sendable {
        public var sessionId: String
        public var losses: [String]
        public var notes: [String]

        public enum CodingKeys: String, CodingKey {
            case sessionId = "session_id"
            case losses
            case notes
        }
    }

    /// An agent that a session can be handed to.
    public struct HandoffTarget: Codable, Equatable, Sendable {
        public var agent: String
        public var displayName: String
        public var isInstalled: Bool

        public enum CodingKeys: String, CodingKey {
            case agent
            case displayName = "display_name"
            case isInstalled = "is_installed"
        }
    }

    /// The agents that a session can be handed to, those that are installed first.
    public struct HandoffTargetsResponse: Codable, Equatable, Sendable {
        public var items: [HandoffTarget]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// That a hook event is kept.
    public struct HookResponse: Codable, Equatable, Sendable {
        public var sessionId: String

        public enum CodingKeys: String, CodingKey {
            case sessionId = "session_id"
        }
    }

    /// An image that the model made (R-K14).
    public struct ImageShown: Codable, Equatable, Sendable {
        /// One of: image.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var image: FilePart

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case image
        }
    }

    /// An insights report. Each list is empty if there is nothing to report.
    public struct Insights: Codable, Equatable, Sendable {
        public var zone: String
        /// One of: day, week.
        public var granularity: String
        public var activity: [ActivityHour]
        public var undatedCalls: Int
        public var projects: [ProjectPeriod]
        public var tools: [ToolUsage]
        public var commands: [CommandFigures]
        public var commandsFound: Int
        public var files: [EditedFile]
        public var filesFound: Int
        public var models: [ModelFigures]
        public var subagents: SubagentShare
        public var compactions: [CompactionFigures]
        public var errors: [ErrorFigures]
        public var errorsFound: Int
        public var notes: [String]

        public enum CodingKeys: String, CodingKey {
            case zone
            case granularity
            case activity
            case undatedCalls = "undated_calls"
            case projects
            case tools
            case commands
            case commandsFound = "commands_found"
            case files
            case filesFound = "files_found"
            case models
            case subagents
            case compactions
            case errors
            case errorsFound = "errors_found"
            case notes
        }
    }

    /// The user stopped the agent, while it was talking or while a tool ran.
    public struct InterruptEvent: Codable, Equatable, Sendable {
        /// One of: interrupt.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var records: [Provenance]?
        public var id: String
        /// One of: answer, tool.
        public var during: String?
        public var messageId: String?
        public var derived: Bool?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case records
            case id
            case during
            case messageId = "message_id"
            case derived
        }
    }

    /// The user stopped the agent (R-K17).
    public struct InterruptShown: Codable, Equatable, Sendable {
        /// One of: interrupt.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var derived: Bool?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case derived
        }
    }

    /// The code of an invitation, and how its guest wants to be called.
    public struct InvitationBody: Codable, Equatable, Sendable {
        public var code: String
        public var name: String

        public enum CodingKeys: String, CodingKey {
            case code
            case name
        }
    }

    /// The answer to a machine that has joined.
    public struct Joined: Codable, Equatable, Sendable {
        public var accessToken: String
        public var team: String
        public var user: String
        public var machine: String
        public var userName: String
        public var machineName: String

        public enum CodingKeys: String, CodingKey {
            case accessToken = "access_token"
            case team
            case user
            case machine
            case userName = "user_name"
            case machineName = "machine_name"
        }
    }

    /// Lines of a file, one after the other, that came from the same place.
    public struct LineRange: Codable, Equatable, Sendable {
        public var first: Int
        public var last: Int
        public var commit: String?
        public var link: OriginLink?

        public enum CodingKeys: String, CodingKey {
            case first
            case last
            case commit
            case link
        }
    }

    /// For how long a link works.
    public struct LinkBody: Codable, Equatable, Sendable {
        public var days: Int?

        public enum CodingKeys: String, CodingKey {
            case days
        }
    }

    /// A machine that pushes sessions.
    public struct Machine: Codable, Equatable, Sendable {
        public var id: String
        public var user: String
        public var name: String
        public var platform: String
        public var createdAt: String
        public var seenAt: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case user
            case name
            case platform
            case createdAt = "created_at"
            case seenAt = "seen_at"
        }
    }

    /// Machines.
    public struct MachineList: Codable, Equatable, Sendable {
        public var items: [Machine]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// A commit that a session made or pushed.
    public struct MadeCommit: Codable, Equatable, Sendable {
        public var hash: String
        public var subject: String?
        public var branch: String?
        /// One of: amended, committed, merged, opened, picked, pushed, reverted.
        public var deed: String
        public var messageId: String
        public var position: Int
        public var turn: Int?
        public var at: String?

        public enum CodingKeys: String, CodingKey {
            case hash
            case subject
            case branch
            case deed
            case messageId = "message_id"
            case position
            case turn
            case at
        }
    }

    /// Who makes the request.
    public struct Me: Codable, Equatable, Sendable {
        public var user: User?
        public var team: Team
        /// One of: admin, member, owner, viewer.
        public var role: String
        public var scopes: [String]
        public var machine: String?
        public var teams: [TeamRole]
        public var session: String?
        public var machineName: String?

        public enum CodingKeys: String, CodingKey {
            case user
            case team
            case role
            case scopes
            case machine
            case teams
            case session
            case machineName = "machine_name"
        }
    }

    /// A person in a team.
    public struct Member: Codable, Equatable, Sendable {
        public var user: User
        /// One of: admin, member, owner, viewer.
        public var role: String
        public var joinedAt: String

        public enum CodingKeys: String, CodingKey {
            case user
            case role
            case joinedAt = "joined_at"
        }
    }

    /// Who is in the team.
    public struct Members: Codable, Equatable, Sendable {
        public var items: [Member]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// The place of a message in one session.
    public struct Membership: Codable, Equatable, Sendable {
        public var sessionId: String
        public var messageId: String
        public var position: Int
        public var parentId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var fateCause: String?
        public var isBilled: Bool?
        public var records: [Provenance]?

        public enum CodingKeys: String, CodingKey {
            case sessionId = "session_id"
            case messageId = "message_id"
            case position
            case parentId = "parent_id"
            case turn
            case step
            case fate
            case fateCause = "fate_cause"
            case isBilled = "is_billed"
            case records
        }
    }

    /// Places of messages in their session.
    public struct MembershipsResponse: Codable, Equatable, Sendable {
        public var items: [Membership]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// A role and ordered parts, as its own records said it.
    public struct Message: Codable, Equatable, Sendable {
        public var id: String
        /// One of: assistant, developer, system, user.
        public var role: String
        public var parts: [Part]?
        public var origin: Origin?
        public var createdAt: String?
        public var completedAt: String?
        public var updatedAt: String?
        public var model: String?
        public var requestedModel: String?
        public var responseId: String?
        public var requestId: String?
        /// One of: aborted, content_filter, context_window, error, length, pause, refusal, stop, tool_use.
        public var stopReason: String?
        public var rawStopReason: String?
        public var usage: Usage?
        public var cost: Cost?
        public var error: MessageError?
        public var provider: ProviderData?
        public var metadata: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case id
            case role
            case parts
            case origin
            case createdAt = "created_at"
            case completedAt = "completed_at"
            case updatedAt = "updated_at"
            case model
            case requestedModel = "requested_model"
            case responseId = "response_id"
            case requestId = "request_id"
            case stopReason = "stop_reason"
            case rawStopReason = "raw_stop_reason"
            case usage
            case cost
            case error
            case provider
            case metadata
        }
    }

    /// A failed model call that the agent logged in the place of an answer.
    public struct MessageError: Codable, Equatable, Sendable {
        public var text: String
        public var kind: String?
        public var status: Int?

        public enum CodingKeys: String, CodingKey {
            case text
            case kind
            case status
        }
    }

    /// A message with everything that is known of it, and its place in each session.
    public struct MessageResponse: Codable, Equatable, Sendable {
        public var message: Message
        public var memberships: [Membership]

        public enum CodingKeys: String, CodingKey {
            case message
            case memberships
        }
    }

    /// The facts about a message that depend on the session.
    public struct MessageRow: Codable, Equatable, Sendable {
        public var position: Int
        public var messageId: String
        public var turn: Int?
        public var step: Int?
        public var fate: Fate
        public var fateCause: String?
        public var cost: Double?
        public var children: [String: String]
        public var results: [[JSONValue]]

        public enum CodingKeys: String, CodingKey {
            case position
            case messageId = "message_id"
            case turn
            case step
            case fate
            case fateCause = "fate_cause"
            case cost
            case children
            case results
        }
    }

    /// Messages of a session, in their order.
    public struct MessagesBody: Codable, Equatable, Sendable {
        public var messages: [Message]?
        public var retracted: [String]?

        public enum CodingKeys: String, CodingKey {
            case messages
            case retracted
        }
    }

    /// How one model was used. Figures per prompt are approximate: see `compared_sessions`.
    public struct ModelFigures: Codable, Equatable, Sendable {
        public var model: String?
        public var calls: Int
        public var sessions: Int
        public var cost: Double?
        public var unpricedCalls: Int
        public var cacheShare: Double?
        public var outputPerCall: Double?
        public var isLowerBound: Bool
        public var failedToolCalls: Int
        public var comparedSessions: Int
        public var costPerPrompt: Double?
        public var stepsPerPrompt: Double?

        public enum CodingKeys: String, CodingKey {
            case model
            case calls
            case sessions
            case cost
            case unpricedCalls = "unpriced_calls"
            case cacheShare = "cache_share"
            case outputPerCall = "output_per_call"
            case isLowerBound = "is_lower_bound"
            case failedToolCalls = "failed_tool_calls"
            case comparedSessions = "compared_sessions"
            case costPerPrompt = "cost_per_prompt"
            case stepsPerPrompt = "steps_per_prompt"
        }
    }

    /// A model with the number of its calls.
    public struct ModelSummary: Codable, Equatable, Sendable {
        public var name: String
        public var calls: Int
        public var sessions: Int

        public enum CodingKeys: String, CodingKey {
            case name
            case calls
            case sessions
        }
    }

    /// All models, the most called first.
    public struct ModelsResponse: Codable, Equatable, Sendable {
        public var items: [ModelSummary]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// What the guest becomes, and for whom it is meant.
    public struct NewInvitation: Codable, Equatable, Sendable {
        /// One of: owner, admin, member, viewer.
        public var role: String?
        public var note: String?

        public enum CodingKeys: String, CodingKey {
            case role
            case note
        }
    }

    /// A link with a secret, shown this once.
    public struct NewLink: Codable, Equatable, Sendable {
        public var address: String
        public var id: String
        public var expiresAt: String?

        public enum CodingKeys: String, CodingKey {
            case address
            case id
            case expiresAt = "expires_at"
        }
    }

    /// Another team.
    public struct NewTeam: Codable, Equatable, Sendable {
        public var name: String

        public enum CodingKeys: String, CodingKey {
            case name
        }
    }

    /// A token, shown this once.
    public struct NewToken: Codable, Equatable, Sendable {
        public var token: String
        public var item: TokenItem

        public enum CodingKeys: String, CodingKey {
            case token
            case item
        }
    }

    /// What a token is for, what it allows, and for how long.
    public struct NewTokenBody: Codable, Equatable, Sendable {
        public var name: String
        public var scopes: [String]?
        public var days: Int?

        public enum CodingKeys: String, CodingKey {
            case name
            case scopes
            case days
        }
    }

    /// The session that a link shows.
    public struct OpenedLink: Codable, Equatable, Sendable {
        public var session: String

        public enum CodingKeys: String, CodingKey {
            case session
        }
    }

    /// A pull or merge request that a session opened.
    public struct OpenedPullRequest: Codable, Equatable, Sendable {
        public var url: String
        public var repository: String
        public var number: Int
        public var messageId: String?
        public var position: Int
        public var turn: Int?
        public var at: String?

        public enum CodingKeys: String, CodingKey {
            case url
            case repository
            case number
            case messageId = "message_id"
            case position
            case turn
            case at
        }
    }

    /// Where a message that no model wrote came from.
    public struct Origin: RawRepresentable, Codable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public static let command = Origin(rawValue: "command")
        public static let commandOutput = Origin(rawValue: "command_output")
        public static let compaction = Origin(rawValue: "compaction")
        public static let harness = Origin(rawValue: "harness")
        public static let notification = Origin(rawValue: "notification")
        public static let prompt = Origin(rawValue: "prompt")
        public static let shell = Origin(rawValue: "shell")
        public static let shellOutput = Origin(rawValue: "shell_output")
        public static let subagentPrompt = Origin(rawValue: "subagent_prompt")
    }

    /// A session that a commit, pull request or line came from, and the turn in it.
    public struct OriginLink: Codable, Equatable, Sendable {
        public var sessionId: String
        public var agent: String
        public var title: String?
        /// One of: content, exact, possible.
        public var confidence: String
        public var reason: String
        public var messageId: String
        public var position: Int
        public var at: String?
        public var turn: Int?
        public var prompt: String?
        public var lines: Int?
        public var ofLines: Int?

        public enum CodingKeys: String, CodingKey {
            case sessionId = "session_id"
            case agent
            case title
            case confidence
            case reason
            case messageId = "message_id"
            case position
            case at
            case turn
            case prompt
            case lines
            case ofLines = "of_lines"
        }
    }

    /// A landmark of a session: a prompt, a compaction, a rewind, an error that is not a tool's, or a pinned message.
    public struct OutlineEntry: Codable, Equatable, Sendable {
        public var position: Int
        public var kind: String
        public var text: String
        public var messageId: String?
        public var turn: Int?
        public var createdAt: String?
        public var fate: Fate?

        public enum CodingKeys: String, CodingKey {
            case position
            case kind
            case text
            case messageId = "message_id"
            case turn
            case createdAt = "created_at"
            case fate
        }
    }

    /// The landmarks of a session, in order.
    public struct OutlineResponse: Codable, Equatable, Sendable {
        public var items: [OutlineEntry]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// Whose session it is; all None on one's own machine.
    public struct Ownership: Codable, Equatable, Sendable {
        public var user: String?
        public var team: String?
        public var task: String?
        public var machine: String?

        public enum CodingKeys: String, CodingKey {
            case user
            case team
            case task
            case machine
        }
    }

    /// A tool call for which the agent requests permission.
    public struct PermissionRequest: Codable, Equatable, Sendable {
        public var id: String
        public var toolCallId: String
        public var toolName: String?
        public var input: JSONValue
        public var reason: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case toolCallId = "tool_call_id"
            case toolName = "tool_name"
            case input
            case reason
        }
    }

    /// A message, its place in the session, and what it cost there.
    public struct PlacedMessage: Codable, Equatable, Sendable {
        public var message: Message
        public var membership: Membership
        public var cost: Cost?

        public enum CodingKeys: String, CodingKey {
            case message
            case membership
            case cost
        }
    }

    /// A working directory that sessions belong to.
    public struct Project: Codable, Equatable, Sendable {
        public var path: String
        public var name: String

        public enum CodingKeys: String, CodingKey {
            case path
            case name
        }
    }

    /// A change of one project: what is left out stays as it is.
    public struct ProjectBody: Codable, Equatable, Sendable {
        public var path: String
        public var name: String?
        public var mergedInto: String?

        public enum CodingKeys: String, CodingKey {
            case path
            case name
            case mergedInto = "merged_into"
        }
    }

    /// What one project used in one day or week.
    public struct ProjectPeriod: Codable, Equatable, Sendable {
        public var period: String
        public var project: String?
        public var label: String?
        public var sessions: Int
        public var calls: Int
        public var cost: Double?
        public var unpricedCalls: Int

        public enum CodingKeys: String, CodingKey {
            case period
            case project
            case label
            case sessions
            case calls
            case cost
            case unpricedCalls = "unpriced_calls"
        }
    }

    /// A project with its counts, subagents not included.
    public struct ProjectSummary: Codable, Equatable, Sendable {
        public var path: String
        public var name: String
        public var sessions: Int
        public var updatedAt: String?
        public var merged: [String]

        public enum CodingKeys: String, CodingKey {
            case path
            case name
            case sessions
            case updatedAt = "updated_at"
            case merged
        }
    }

    /// All projects, the last used first.
    public struct ProjectsResponse: Codable, Equatable, Sendable {
        public var items: [ProjectSummary]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// Whether the agent may do what it asks leave for.
    public struct PromptAnswerBody: Codable, Equatable, Sendable {
        public var id: String
        public var allow: Bool
        public var reason: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case allow
            case reason
        }
    }

    /// What the agent is asked.
    public struct PromptBody: Codable, Equatable, Sendable {
        public var text: String

        public enum CodingKeys: String, CodingKey {
            case text
        }
    }

    /// Whether a session goes on from the page.
    public struct PromptResponse: Codable, Equatable, Sendable {
        public var canGoOn: Bool
        public var canAsk: Bool
        public var running: Bool
        public var problem: String?
        public var permissionRequests: [PermissionRequest]

        public enum CodingKeys: String, CodingKey {
            case canGoOn = "can_go_on"
            case canAsk = "can_ask"
            case running
            case problem
            case permissionRequests = "permission_requests"
        }
    }

    /// The place of a record: file and byte range, or table and key.
    public struct Provenance: Codable, Equatable, Sendable {
        public var source: String
        public var offset: Int?
        public var length: Int?
        public var key: String?

        public enum CodingKeys: String, CodingKey {
            case source
            case offset
            case length
            case key
        }
    }

    /// What a provider needs to take a message or part back unchanged.
    public struct ProviderData: Codable, Equatable, Sendable {
        public var name: String
        public var model: String?
        public var opaque: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case name
            case model
            case opaque
        }
    }

    /// A person of whom somebody sees sessions.
    public struct Pusher: Codable, Equatable, Sendable {
        public var id: String
        public var name: String
        public var machines: [String]
        public var sessions: Int

        public enum CodingKeys: String, CodingKey {
            case id
            case name
            case machines
            case sessions
        }
    }

    /// People of whom the caller sees sessions.
    public struct Pushers: Codable, Equatable, Sendable {
        public var items: [Pusher]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// Thinking that the model produced before or between its answers.
    public struct ReasoningPart: Codable, Equatable, Sendable {
        /// One of: reasoning.
        public var type: String
        public var id: String?
        public var provider: ProviderData?
        public var metadata: [String: JSONValue]?
        public var text: String
        public var redacted: Bool?
        /// One of: done, streaming.
        public var state: String?
        public var durationMs: Int?
        public var blob: BlobRef?

        public enum CodingKeys: String, CodingKey {
            case type
            case id
            case provider
            case metadata
            case text
            case redacted
            case state
            case durationMs = "duration_ms"
            case blob
        }
    }

    /// Any other record of the log, by its own kind. `known` is False when this version does not know the kind.
    public struct RecordEvent: Codable, Equatable, Sendable {
        /// One of: record.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var records: [Provenance]?
        public var id: String
        public var kind: String
        public var known: Bool?
        public var data: JSONValue?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case records
            case id
            case kind
            case known
            case data
        }
    }

    /// A record as the agent wrote it.
    public struct RecordText: Codable, Equatable, Sendable {
        public var source: String
        public var offset: Int?
        public var length: Int?
        public var text: String
        public var exact: Bool

        public enum CodingKeys: String, CodingKey {
            case source
            case offset
            case length
            case text
            case exact
        }
    }

    /// Records in the order of the log.
    public struct RecordsResponse: Codable, Equatable, Sendable {
        public var items: [RecordText]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// That a session came out of another.
    public struct Relationship: Codable, Equatable, Sendable {
        /// One of: continuation, fork, subagent.
        public var kind: String
        public var parentSessionId: String
        public var parentToolCallId: String?
        public var parentMessageId: String?
        public var inferred: Bool?

        public enum CodingKeys: String, CodingKey {
            case kind
            case parentSessionId = "parent_session_id"
            case parentToolCallId = "parent_tool_call_id"
            case parentMessageId = "parent_message_id"
            case inferred
        }
    }

    /// A piece of a replay.
    public struct ReplayPage: Codable, Equatable, Sendable {
        public var items: [ReplayedEvent]
        public var before: Int?
        public var after: Int?

        public enum CodingKeys: String, CodingKey {
            case items
            case before
            case after
        }
    }

    /// An event of a replay, and how long to wait before it.
    public struct ReplayedEvent: Codable, Equatable, Sendable {
        public var delay: Double
        public var event: Shown

        public enum CodingKeys: String, CodingKey {
            case delay
            case event
        }
    }

    /// What a model call took and why it ended (R-K20).
    public struct ResponseMetadata: Codable, Equatable, Sendable {
        /// One of: response-metadata.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        /// One of: aborted, content_filter, context_window, error, length, pause, refusal, stop, tool_use.
        public var stopReason: String?
        public var rawStopReason: String?
        public var usage: Usage?
        public var cost: Cost?
        public var model: String?
        public var responseId: String?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case stopReason = "stop_reason"
            case rawStopReason = "raw_stop_reason"
            case usage
            case cost
            case model
            case responseId = "response_id"
        }
    }

    /// How the agent goes on with a session.
    public struct ResumeCommand: Codable, Equatable, Sendable {
        public var folder: String?
        public var command: [String]
        public var problem: String?

        public enum CodingKeys: String, CodingKey {
            case folder
            case command
            case problem
        }
    }

    /// What a rule about age forgets.
    public struct Retention: Codable, Equatable, Sendable {
        public var sessions: Int
        public var people: Int
        public var oldest: String?

        public enum CodingKeys: String, CodingKey {
            case sessions
            case people
            case oldest
        }
    }

    /// The user went back: what followed `to_message_id` left the active branch (None: back to the start).
    public struct RewindEvent: Codable, Equatable, Sendable {
        /// One of: rewind.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var records: [Provenance]?
        public var id: String
        public var toMessageId: String?
        public var metadata: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case records
            case id
            case toMessageId = "to_message_id"
            case metadata
        }
    }

    /// The user went back; `message_id` is the last message that stayed (None: back to the start).
    public struct RewindShown: Codable, Equatable, Sendable {
        /// One of: rewind.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
        }
    }

    /// What a member becomes.
    public struct RoleBody: Codable, Equatable, Sendable {
        /// One of: owner, admin, member, viewer.
        public var role: String

        public enum CodingKeys: String, CodingKey {
            case role
        }
    }

    /// The rules of a team.
    public struct Rules: Codable, Equatable, Sendable {
        /// One of: full, metrics, redacted.
        public var highestLevel: String
        /// One of: private, team.
        public var visibility: String
        public var retentionDays: Int?

        public enum CodingKeys: String, CodingKey {
            case highestLevel = "highest_level"
            case visibility
            case retentionDays = "retention_days"
        }
    }

    /// What changes of the rules; what is left out stays.
    public struct RulesBody: Codable, Equatable, Sendable {
        public var highestLevel: String?
        public var visibility: String?
        public var retentionDays: Int?

        public enum CodingKeys: String, CodingKey {
            case highestLevel = "highest_level"
            case visibility
            case retentionDays = "retention_days"
        }
    }

    /// A piece of the messages of a run, in their order.
    public struct RunMessagePage: Codable, Equatable, Sendable {
        public var items: [PlacedMessage]
        public var nextCursor: String?

        public enum CodingKeys: String, CodingKey {
            case items
            case nextCursor = "next_cursor"
        }
    }

    /// Facts about the run that belong to no message: totals, durations, modes, titles, settings.
    public struct RunMetadataEvent: Codable, Equatable, Sendable {
        /// One of: run-metadata.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var records: [Provenance]?
        public var id: String
        public var kind: String
        public var data: JSONValue?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case records
            case id
            case kind
            case data
        }
    }

    /// A fact about the run (R-K19).
    public struct RunMetadataShown: Codable, Equatable, Sendable {
        /// One of: run-metadata.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var kind: String
        public var data: JSONValue?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case kind
            case data
        }
    }

    /// A piece of the list of runs.
    public struct RunPage: Codable, Equatable, Sendable {
        public var items: [RunResponse]
        public var nextCursor: String?
        public var total: Int

        public enum CodingKeys: String, CodingKey {
            case items
            case nextCursor = "next_cursor"
            case total
        }
    }

    /// What was started through turnlog, and how it went; of the stored run only what others may use.
    public struct RunResponse: Codable, Equatable, Sendable {
        public var id: String
        /// One of: command, import, runtime.
        public var origin: String
        /// One of: cancelled, completed, failed, pending, running.
        public var status: String
        public var agent: String?
        public var sessionId: String?
        public var command: [String]
        public var cwd: String?
        public var prompt: String?
        public var model: String?
        public var systemPrompt: String?
        public var createdAt: String
        public var startedAt: String?
        public var endedAt: String?
        public var exitCode: Int?
        public var error: String?
        public var result: String?
        public var logPath: String?
        public var logProblem: String?
        public var tokens: Int?
        public var usage: Usage?
        public var cost: Double?
        public var toolCalls: Int?
        public var pid: Int?
        public var bootId: String?
        public var metadata: [String: JSONValue]

        public enum CodingKeys: String, CodingKey {
            case id
            case origin
            case status
            case agent
            case sessionId = "session_id"
            case command
            case cwd
            case prompt
            case model
            case systemPrompt = "system_prompt"
            case createdAt = "created_at"
            case startedAt = "started_at"
            case endedAt = "ended_at"
            case exitCode = "exit_code"
            case error
            case result
            case logPath = "log_path"
            case logProblem = "log_problem"
            case tokens
            case usage
            case cost
            case toolCalls = "tool_calls"
            case pid
            case bootId = "boot_id"
            case metadata
        }
    }

    /// The hits of one session on one page.
    public struct SearchGroup: Codable, Equatable, Sendable {
        public var session: SearchedSession
        public var hits: [SearchHit]
        public var names: [FoundName]
        public var matches: Int?
        public var matchesIsExact: Bool

        public enum CodingKeys: String, CodingKey {
            case session
            case hits
            case names
            case matches
            case matchesIsExact = "matches_is_exact"
        }
    }

    /// A part of a message in which the query was found.
    public struct SearchHit: Codable, Equatable, Sendable {
        public var messageId: String
        public var position: Int
        public var part: Int
        /// One of: file, input, output, reasoning, text.
        public var field: String
        /// One of: assistant, developer, system, user.
        public var role: String
        public var toolName: String?
        public var createdAt: String?
        public var snippet: [SnippetPiece]
        public var alsoIn: [SessionPosition]

        public enum CodingKeys: String, CodingKey {
            case messageId = "message_id"
            case position
            case part
            case field
            case role
            case toolName = "tool_name"
            case createdAt = "created_at"
            case snippet
            case alsoIn = "also_in"
        }
    }

    /// How far search is behind the store.
    public struct SearchProgress: Codable, Equatable, Sendable {
        public var unindexed: Int?

        public enum CodingKeys: String, CodingKey {
            case unindexed
        }
    }

    /// A page of sessions or hits; hits are grouped by session, in the order of their first hit.
    public struct SearchResponse: Codable, Equatable, Sendable {
        public var items: [SearchGroup]
        public var nextCursor: String?
        public var total: Int?
        public var totalIsExact: Bool
        /// One of: hits, sessions.
        public var counted: String
        public var unindexed: Int
        public var suggestion: String?
        public var note: String?

        public enum CodingKeys: String, CodingKey {
            case items
            case nextCursor = "next_cursor"
            case total
            case totalIsExact = "total_is_exact"
            case counted
            case unindexed
            case suggestion
            case note
        }
    }

    /// A session that a search found.
    public struct SearchedSession: Codable, Equatable, Sendable {
        public var id: String
        public var agent: String
        public var title: String?
        public var project: String?
        public var projectName: String?
        public var user: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case agent
            case title
            case project
            case projectName = "project_name"
            case user
        }
    }

    /// A session that a program writes. What is left out, or null, stays as it is.
    public struct SessionBody: Codable, Equatable, Sendable {
        public var externalId: String
        public var agent: String?
        public var title: String?
        public var summary: String?
        public var cwd: String?
        public var gitBranch: String?
        public var gitCommit: String?
        public var createdAt: String?
        public var updatedAt: String?
        public var ownership: Ownership?
        public var metadata: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case externalId = "external_id"
            case agent
            case title
            case summary
            case cwd
            case gitBranch = "git_branch"
            case gitCommit = "git_commit"
            case createdAt = "created_at"
            case updatedAt = "updated_at"
            case ownership
            case metadata
        }
    }

    /// What a session holds, by its memberships: copies in forks included, superseded messages not.
    public struct SessionCounts: Codable, Equatable, Sendable {
        public var messages: Int?
        public var prompts: Int?
        public var turns: Int?
        public var steps: Int?
        public var toolCalls: Int?
        public var failedToolCalls: Int?
        public var reasoningParts: Int?
        public var files: Int?
        public var events: Int?
        public var diagnostics: Int?

        public enum CodingKeys: String, CodingKey {
            case messages
            case prompts
            case turns
            case steps
            case toolCalls = "tool_calls"
            case failedToolCalls = "failed_tool_calls"
            case reasoningParts = "reasoning_parts"
            case files
            case events
            case diagnostics
        }
    }

    /// A session, what the user said about it, what it is doing, and what a list shows besides.
    public struct SessionItem: Codable, Equatable, Sendable {
        public var id: String
        public var agent: String
        public var externalId: String
        public var title: String?
        /// One of: custom, generated, opening, prompt, summary, user.
        public var titleSource: String?
        public var project: Project?
        public var cwd: String?
        public var worktree: String?
        public var gitBranch: String?
        public var gitCommit: String?
        public var agentVersion: String?
        public var models: [String]?
        public var createdAt: String?
        public var updatedAt: String?
        public var relationships: [Relationship]?
        public var ownership: Ownership?
        public var native: Bool?
        public var counts: SessionCounts?
        public var usage: UsageTotal?
        public var totals: [SessionTotal]?
        public var cost: Cost?
        public var unpricedCalls: Int?
        public var reportedCost: Cost?
        public var metadata: [String: JSONValue]?
        public var annotations: Annotations?
        public var state: SessionState?
        public var resume: ResumeCommand?
        public var firstPrompt: String?
        public var children: Int?
        public var costWithSubagents: Cost?
        public var unpricedWithSubagents: Int?
        public var activeMs: Int?
        /// One of: full, metrics, redacted.
        public var uploadLevel: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case agent
            case externalId = "external_id"
            case title
            case titleSource = "title_source"
            case project
            case cwd
            case worktree
            case gitBranch = "git_branch"
            case gitCommit = "git_commit"
            case agentVersion = "agent_version"
            case models
            case createdAt = "created_at"
            case updatedAt = "updated_at"
            case relationships
            case ownership
            case native
            case counts
            case usage
            case totals
            case cost
            case unpricedCalls = "unpriced_calls"
            case reportedCost = "reported_cost"
            case metadata
            case annotations
            case state
            case resume
            case firstPrompt = "first_prompt"
            case children
            case costWithSubagents = "cost_with_subagents"
            case unpricedWithSubagents = "unpriced_with_subagents"
            case activeMs = "active_ms"
            case uploadLevel = "upload_level"
        }
    }

    /// A piece of the list of sessions.
    public struct SessionPage: Codable, Equatable, Sendable {
        public var items: [SessionItem]
        public var nextCursor: String?
        public var total: Int?
        public var changeSequence: Int

        public enum CodingKeys: String, CodingKey {
            case items
            case nextCursor = "next_cursor"
            case total
            case changeSequence = "change_sequence"
        }
    }

    /// A place in a session.
    public struct SessionPosition: Codable, Equatable, Sendable {
        public var sessionId: String
        public var position: Int

        public enum CodingKeys: String, CodingKey {
            case sessionId = "session_id"
            case position
        }
    }

    /// A session and its relatives.
    public struct SessionResponse: Codable, Equatable, Sendable {
        public var session: SessionItem
        public var parent: SessionItem?
        public var children: [SessionItem]
        public var forks: [SessionItem]
        public var firstPosition: Int?
        public var lastPosition: Int?
        public var changeSequence: Int

        public enum CodingKeys: String, CodingKey {
            case session
            case parent
            case children
            case forks
            case firstPosition = "first_position"
            case lastPosition = "last_position"
            case changeSequence = "change_sequence"
        }
    }

    /// Whose a session is, and who may read it besides.
    public struct SessionSharing: Codable, Equatable, Sendable {
        public var owner: String
        public var machine: String?
        /// One of: full, metrics, none, redacted.
        public var level: String
        /// One of: link, people, private, team.
        public var visibility: String
        public var people: [String]
        public var links: [ShareLink]

        public enum CodingKeys: String, CodingKey {
            case owner
            case machine
            case level
            case visibility
            case people
            case links
        }
    }

    /// The state of a session when the store was read, and the evidence for it.
    public struct SessionState: Codable, Equatable, Sendable {
        /// One of: done, killed, quiet, running, waiting.
        public var state: String
        /// One of: answer, approval, closed, interrupt, nothing, open-call, open-turn, process, process-ended, question, silence, turn-ended.
        public var evidence: String
        public var detail: String?
        public var since: String?
        public var quietAt: String?
        public var doing: UnfinishedCall?

        public enum CodingKeys: String, CodingKey {
            case state
            case evidence
            case detail
            case since
            case quietAt = "quiet_at"
            case doing
        }
    }

    /// Tokens that a log counts for a whole session and one model, where it has none of single calls.
    public struct SessionTotal: Codable, Equatable, Sendable {
        public var model: String?
        public var usage: Usage
        public var calls: Int?
        public var task: String?
        public var answer: String?

        public enum CodingKeys: String, CodingKey {
            case model
            case usage
            case calls
            case task
            case answer
        }
    }

    /// What changed in a session: made of stored bodies, so this class only describes it.
    public struct SessionUpdate: Codable, Equatable, Sendable {
        public var sequence: Int
        public var session: SessionItem
        public var items: [Message]
        public var rows: [MessageRow]
        public var events: [Event]
        public var goneMessages: [String]
        public var goneEvents: [[JSONValue]]
        public var children: [SessionItem]

        public enum CodingKeys: String, CodingKey {
            case sequence
            case session
            case items
            case rows
            case events
            case goneMessages = "gone_messages"
            case goneEvents = "gone_events"
            case children
        }
    }

    /// The commits and pull requests of a session, in the order of its messages, each once.
    public struct SessionWork: Codable, Equatable, Sendable {
        public var commits: [MadeCommit]
        public var pullRequests: [OpenedPullRequest]
        public var unindexed: Int

        public enum CodingKeys: String, CodingKey {
            case commits
            case pullRequests = "pull_requests"
            case unindexed
        }
    }

    /// Sessions that are new or of which anything has changed.
    public struct SessionsUpdate: Codable, Equatable, Sendable {
        public var sequence: Int
        public var items: [SessionItem]

        public enum CodingKeys: String, CodingKey {
            case sequence
            case items
        }
    }

    /// A link with which anybody reads a session.
    public struct ShareLink: Codable, Equatable, Sendable {
        public var id: String
        public var createdAt: String
        public var expiresAt: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case createdAt = "created_at"
            case expiresAt = "expires_at"
        }
    }

    /// A session of the caller that others may read, too, or may when it comes again. Its subagents go with it.
    public struct SharedSession: Codable, Equatable, Sendable {
        public var id: String
        /// One of: link, people, team.
        public var visibility: String
        public var people: [String]

        public enum CodingKeys: String, CodingKey {
            case id
            case visibility
            case people
        }
    }

    /// The sessions of the caller that others may read.
    public struct SharedSessions: Codable, Equatable, Sendable {
        public var items: [SharedSession]
        /// One of: private, team.
        public var newSessions: String

        public enum CodingKeys: String, CodingKey {
            case items
            case newSessions = "new_sessions"
        }
    }

    /// Who may read the session from now on. Links are made one by one.
    public struct SharingBody: Codable, Equatable, Sendable {
        /// One of: private, people, team.
        public var visibility: String
        public var people: [String]?

        public enum CodingKeys: String, CodingKey {
            case visibility
            case people
        }
    }

    /// How somebody can sign in.
    public struct SignInChoices: Codable, Equatable, Sendable {
        public var openid: String?

        public enum CodingKeys: String, CodingKey {
            case openid
        }
    }

    /// A link to the page, which signs one browser in.
    public struct SignInLinkResponse: Codable, Equatable, Sendable {
        public var address: String
        public var file: String?

        public enum CodingKeys: String, CodingKey {
            case address
            case file
        }
    }

    /// What signs a browser in.
    public struct SignInResponse: Codable, Equatable, Sendable {
        public var key: String

        public enum CodingKeys: String, CodingKey {
            case key
        }
    }

    /// A piece of a snippet; the marked ones are what was found.
    public struct SnippetPiece: Codable, Equatable, Sendable {
        public var text: String
        public var marked: Bool

        public enum CodingKeys: String, CodingKey {
            case text
            case marked
        }
    }

    /// A document the model cited.
    public struct SourceDocumentPart: Codable, Equatable, Sendable {
        /// One of: source-document.
        public var type: String
        public var id: String?
        public var provider: ProviderData?
        public var metadata: [String: JSONValue]?
        public var sourceId: String
        public var mediaType: String
        public var title: String
        public var filename: String?

        public enum CodingKeys: String, CodingKey {
            case type
            case id
            case provider
            case metadata
            case sourceId = "source_id"
            case mediaType = "media_type"
            case title
            case filename
        }
    }

    /// A web page the model cited or found.
    public struct SourceUrlPart: Codable, Equatable, Sendable {
        /// One of: source-url.
        public var type: String
        public var id: String?
        public var provider: ProviderData?
        public var metadata: [String: JSONValue]?
        public var sourceId: String
        public var url: String
        public var title: String?

        public enum CodingKeys: String, CodingKey {
            case type
            case id
            case provider
            case metadata
            case sourceId = "source_id"
            case url
            case title
        }
    }

    /// What the server is and does.
    public struct StatusResponse: Codable, Equatable, Sendable {
        public var version: String
        public var sample: Bool
        public var prompts: Bool
        public var hub: Bool
        public var changeSequence: Int
        public var unwritable: String?
        public var sync: SyncProgress
        public var search: SearchProgress
        public var store: StoreCounts

        public enum CodingKeys: String, CodingKey {
            case version
            case sample
            case prompts
            case hub
            case changeSequence = "change_sequence"
            case unwritable
            case sync
            case search
            case store
        }
    }

    /// How much a store contains, and when it was last synced.
    public struct StoreCounts: Codable, Equatable, Sendable {
        public var path: String
        public var schemaVersion: Int
        public var fileSize: Int?
        public var sessions: Int
        public var subagents: Int
        public var messages: Int
        public var sources: Int
        public var sourceBytes: Int
        public var archiveBytes: Int
        public var vanished: Int
        public var unreadable: Int
        public var diagnostics: Int
        public var lastSyncAt: String?

        public enum CodingKeys: String, CodingKey {
            case path
            case schemaVersion = "schema_version"
            case fileSize = "file_size"
            case sessions
            case subagents
            case messages
            case sources
            case sourceBytes = "source_bytes"
            case archiveBytes = "archive_bytes"
            case vanished
            case unreadable
            case diagnostics
            case lastSyncAt = "last_sync_at"
        }
    }

    /// What could not be read, where, and why.
    public struct StoredDiagnostic: Codable, Equatable, Sendable {
        public var path: String
        public var agent: String
        public var sessionId: String?
        public var offset: Int
        public var length: Int
        public var line: Int?
        public var jsonPath: String?
        public var severity: String
        public var reason: String

        public enum CodingKeys: String, CodingKey {
            case path
            case agent
            case sessionId = "session_id"
            case offset
            case length
            case line
            case jsonPath = "json_path"
            case severity
            case reason
        }
    }

    /// A part of a message, and its id in the store.
    public struct StoredPart: Codable, Equatable, Sendable {
        public var id: String
        public var messageId: String
        public var sequence: Int
        public var part: Part

        public enum CodingKeys: String, CodingKey {
            case id
            case messageId = "message_id"
            case sequence
            case part
        }
    }

    /// What subagents have of the whole.
    public struct SubagentShare: Codable, Equatable, Sendable {
        public var sessions: Int
        public var calls: Int
        public var totalCalls: Int
        public var cost: Double?
        public var totalCost: Double?
        public var share: Double?

        public enum CodingKeys: String, CodingKey {
            case sessions
            case calls
            case totalCalls = "total_calls"
            case cost
            case totalCost = "total_cost"
            case share
        }
    }

    /// What some people used.
    public struct Sums: Codable, Equatable, Sendable {
        public var people: Int?
        public var sessions: Int?
        public var calls: Int?
        public var unknownCalls: Int?
        public var unpricedCalls: Int?
        public var tokens: Int?
        public var output: Int?
        public var cost: Double?

        public enum CodingKeys: String, CodingKey {
            case people
            case sessions
            case calls
            case unknownCalls = "unknown_calls"
            case unpricedCalls = "unpriced_calls"
            case tokens
            case output
            case cost
        }
    }

    /// A file that the last pass could not read.
    public struct SyncProblem: Codable, Equatable, Sendable {
        public var path: String
        public var reason: String

        public enum CodingKeys: String, CodingKey {
            case path
            case reason
        }
    }

    /// How far the background has read the logs.
    public struct SyncProgress: Codable, Equatable, Sendable {
        public var state: String
        public var phase: String?
        public var done: Int
        public var total: Int
        public var passes: Int
        public var startedAt: String?
        public var endedAt: String?
        public var error: String?
        public var problems: [SyncProblem]

        public enum CodingKeys: String, CodingKey {
            case state
            case phase
            case done
            case total
            case passes
            case startedAt = "started_at"
            case endedAt = "ended_at"
            case error
            case problems
        }
    }

    /// A task: sessions that belong together, of one or several agents.
    public struct Task: Codable, Equatable, Sendable {
        public var id: String
        public var name: String
        public var user: String?
        public var sessions: Int
        public var createdAt: String?
        public var updatedAt: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case name
            case user
            case sessions
            case createdAt = "created_at"
            case updatedAt = "updated_at"
        }
    }

    /// A task to create.
    public struct TaskBody: Codable, Equatable, Sendable {
        public var name: String
        public var id: String?

        public enum CodingKeys: String, CodingKey {
            case name
            case id
        }
    }

    /// Another name of a task.
    public struct TaskNameBody: Codable, Equatable, Sendable {
        public var name: String

        public enum CodingKeys: String, CodingKey {
            case name
        }
    }

    /// All tasks, the last used first.
    public struct TasksResponse: Codable, Equatable, Sendable {
        public var items: [Task]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// A team.
    public struct Team: Codable, Equatable, Sendable {
        public var id: String
        public var name: String
        public var smallestGroup: Int

        public enum CodingKeys: String, CodingKey {
            case id
            case name
            case smallestGroup = "smallest_group"
        }
    }

    /// A team that the caller is in.
    public struct TeamBody: Codable, Equatable, Sendable {
        public var team: String

        public enum CodingKeys: String, CodingKey {
            case team
        }
    }

    /// A budget, and what of it the caller may know of the running month.
    public struct TeamBudget: Codable, Equatable, Sendable {
        public var id: String
        /// One of: person, project, team.
        public var scope: String
        public var subject: String?
        public var limit: Double
        public var month: String
        public var spent: Double?
        public var unpricedCalls: Int?
        public var state: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case scope
            case subject
            case limit
            case month
            case spent
            case unpricedCalls = "unpriced_calls"
            case state
        }
    }

    /// What changes of the team; what is left out stays.
    public struct TeamChange: Codable, Equatable, Sendable {
        public var name: String?
        public var smallestGroup: Int?

        public enum CodingKeys: String, CodingKey {
            case name
            case smallestGroup = "smallest_group"
        }
    }

    /// A team that the caller is in, and as what.
    public struct TeamRole: Codable, Equatable, Sendable {
        public var team: Team
        /// One of: admin, member, owner, viewer.
        public var role: String

        public enum CodingKeys: String, CodingKey {
            case team
            case role
        }
    }

    /// The usage of one person, project, model or day.
    public struct TeamRow: Codable, Equatable, Sendable {
        public var name: String?
        public var sums: Sums

        public enum CodingKeys: String, CodingKey {
            case name
            case sums
        }
    }

    /// The rules of the team.
    public struct TeamRules: Codable, Equatable, Sendable {
        public var rules: Rules
        public var agreed: Bool

        public enum CodingKeys: String, CodingKey {
            case rules
            case agreed
        }
    }

    /// What a team used.
    public struct TeamUsage: Codable, Equatable, Sendable {
        /// One of: day, model, person, project.
        public var by: String
        public var smallestGroup: Int
        public var rows: [TeamRow]
        public var folded: Sums?
        public var totals: Sums?
        public var countedAt: String

        public enum CodingKeys: String, CodingKey {
            case by
            case smallestGroup = "smallest_group"
            case rows
            case folded
            case totals
            case countedAt = "counted_at"
        }
    }

    /// Text that was said. In a stored body `text` is a preview when `blob` names the whole.
    public struct TextPart: Codable, Equatable, Sendable {
        /// One of: text.
        public var type: String
        public var id: String?
        public var provider: ProviderData?
        public var metadata: [String: JSONValue]?
        public var text: String
        public var citations: [Citation]?
        /// One of: done, streaming.
        public var state: String?
        public var blob: BlobRef?

        public enum CodingKeys: String, CodingKey {
            case type
            case id
            case provider
            case metadata
            case text
            case citations
            case state
            case blob
        }
    }

    /// A token, an invitation or a browser, without its secret.
    public struct TokenItem: Codable, Equatable, Sendable {
        public var id: String
        /// One of: attempt, browser, device, invitation, link, machine, personal.
        public var kind: String
        public var user: String?
        public var name: String
        public var scopes: [String]
        public var role: String?
        public var machine: String?
        public var createdAt: String
        public var expiresAt: String?
        public var usedAt: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case kind
            case user
            case name
            case scopes
            case role
            case machine
            case createdAt = "created_at"
            case expiresAt = "expires_at"
            case usedAt = "used_at"
        }
    }

    /// Tokens, invitations or browsers.
    public struct Tokens: Codable, Equatable, Sendable {
        public var items: [TokenItem]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// A tool call in lists, without its input and output, which `Store.message` has.
    public struct ToolCall: Codable, Equatable, Sendable {
        public var toolCallId: String
        public var toolName: String
        public var kind: String
        public var state: String
        public var messageId: String
        public var sessionId: String
        public var position: Int
        public var agent: String
        public var startedAt: String?
        public var completedAt: String?
        public var durationMs: Int?
        public var exitCode: Int?
        public var path: String?
        public var inputSize: Int
        public var outputSize: Int

        public enum CodingKeys: String, CodingKey {
            case toolCallId = "tool_call_id"
            case toolName = "tool_name"
            case kind
            case state
            case messageId = "message_id"
            case sessionId = "session_id"
            case position
            case agent
            case startedAt = "started_at"
            case completedAt = "completed_at"
            case durationMs = "duration_ms"
            case exitCode = "exit_code"
            case path
            case inputSize = "input_size"
            case outputSize = "output_size"
        }
    }

    /// A tool call, and the message that made it.
    public struct ToolCallBody: Codable, Equatable, Sendable {
        public var messageId: String
        public var call: ToolCallPart

        public enum CodingKeys: String, CodingKey {
            case messageId = "message_id"
            case call
        }
    }

    /// A piece of the list of tool calls.
    public struct ToolCallPage: Codable, Equatable, Sendable {
        public var items: [ToolCall]
        public var nextCursor: String?

        public enum CodingKeys: String, CodingKey {
            case items
            case nextCursor = "next_cursor"
        }
    }

    /// One invocation of a tool with everything that came back.
    public struct ToolCallPart: Codable, Equatable, Sendable {
        /// One of: tool-call.
        public var type: String
        public var id: String?
        public var provider: ProviderData?
        public var metadata: [String: JSONValue]?
        public var toolCallId: String
        public var toolName: String
        public var kind: ToolKind?
        public var input: JSONValue?
        public var inputText: String?
        public var inputBlob: BlobRef?
        public var state: ToolState?
        public var title: String?
        public var approval: Approval?
        public var providerExecuted: Bool?
        public var parentToolCallId: String?
        public var startedAt: String?
        public var childSessionId: String?
        public var results: [ToolResult]?

        public enum CodingKeys: String, CodingKey {
            case type
            case id
            case provider
            case metadata
            case toolCallId = "tool_call_id"
            case toolName = "tool_name"
            case kind
            case input
            case inputText = "input_text"
            case inputBlob = "input_blob"
            case state
            case title
            case approval
            case providerExecuted = "provider_executed"
            case parentToolCallId = "parent_tool_call_id"
            case startedAt = "started_at"
            case childSessionId = "child_session_id"
            case results
        }
    }

    /// A call, with the arguments exactly as the model wrote them (R-K15).
    public struct ToolCallShown: Codable, Equatable, Sendable {
        /// One of: tool-call.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var toolCallId: String
        public var toolName: String
        public var arguments: String
        public var kind: ToolKind?
        public var title: String?
        public var childSessionId: String?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case toolCallId = "tool_call_id"
            case toolName = "tool_name"
            case arguments
            case kind
            case title
            case childSessionId = "child_session_id"
        }
    }

    /// What a tool does, whatever its agent calls it (the kinds of the Agent Client Protocol).
    public struct ToolKind: RawRepresentable, Codable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public static let ask = ToolKind(rawValue: "ask")
        public static let delete = ToolKind(rawValue: "delete")
        public static let edit = ToolKind(rawValue: "edit")
        public static let execute = ToolKind(rawValue: "execute")
        public static let fetch = ToolKind(rawValue: "fetch")
        public static let move = ToolKind(rawValue: "move")
        public static let other = ToolKind(rawValue: "other")
        public static let read = ToolKind(rawValue: "read")
        public static let search = ToolKind(rawValue: "search")
        public static let subagent = ToolKind(rawValue: "subagent")
        public static let switchMode = ToolKind(rawValue: "switch_mode")
        public static let think = ToolKind(rawValue: "think")
    }

    /// One answer to a tool call. A call may have several (async launch and report, preliminary and final).
    public struct ToolResult: Codable, Equatable, Sendable {
        public var id: String
        /// One of: aborted, denied, error, success.
        public var status: String?
        public var content: [Part]?
        public var structured: JSONValue?
        public var errorText: String?
        public var exitCode: Int?
        public var preliminary: Bool?
        public var completedAt: String?
        public var durationMs: Int?
        public var spilledTo: String?
        public var sequence: Int?
        public var metadata: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case id
            case status
            case content
            case structured
            case errorText = "error_text"
            case exitCode = "exit_code"
            case preliminary
            case completedAt = "completed_at"
            case durationMs = "duration_ms"
            case spilledTo = "spilled_to"
            case sequence
            case metadata
        }
    }

    /// A result arrived. `message_id` is None for an orphan: no call of that id is known.
    public struct ToolResultEvent: Codable, Equatable, Sendable {
        /// One of: tool-result.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var records: [Provenance]?
        public var toolCallId: String
        public var result: ToolResult
        public var toolName: String?
        public var messageId: String?
        public var approval: Approval?
        public var duplicate: Bool?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case records
            case toolCallId = "tool_call_id"
            case result
            case toolName = "tool_name"
            case messageId = "message_id"
            case approval
            case duplicate
        }
    }

    /// A result where it arrived: `status` as two-valued as a screen needs it, `outcome` as it is (R-K16).
    public struct ToolResultShown: Codable, Equatable, Sendable {
        /// One of: tool-result.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var toolCallId: String
        public var result: String
        /// One of: error, success.
        public var status: String
        /// One of: aborted, denied, error, success.
        public var outcome: String
        public var toolName: String?
        public var images: [FilePart]?
        public var errorText: String?
        public var exitCode: Int?
        public var preliminary: Bool?
        public var duplicate: Bool?
        public var structured: JSONValue?
        public var metadata: [String: JSONValue]?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case toolCallId = "tool_call_id"
            case result
            case status
            case outcome
            case toolName = "tool_name"
            case images
            case errorText = "error_text"
            case exitCode = "exit_code"
            case preliminary
            case duplicate
            case structured
            case metadata
        }
    }

    /// The state of a call. The last four are final, though a later result may still replace a final state.
    public struct ToolState: RawRepresentable, Codable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public static let aborted = ToolState(rawValue: "aborted")
        public static let approvalRequested = ToolState(rawValue: "approval-requested")
        public static let approvalResponded = ToolState(rawValue: "approval-responded")
        public static let inputAvailable = ToolState(rawValue: "input-available")
        public static let inputStreaming = ToolState(rawValue: "input-streaming")
        public static let outputAvailable = ToolState(rawValue: "output-available")
        public static let outputDenied = ToolState(rawValue: "output-denied")
        public static let outputError = ToolState(rawValue: "output-error")
    }

    /// How often a tool was called, and the outcomes.
    public struct ToolUsage: Codable, Equatable, Sendable {
        public var toolName: String
        public var kind: String
        public var calls: Int
        public var failed: Int
        public var denied: Int
        public var aborted: Int
        public var unanswered: Int
        public var durationMs: Int
        public var unknownDurations: Int

        public enum CodingKeys: String, CodingKey {
            case toolName = "tool_name"
            case kind
            case calls
            case failed
            case denied
            case aborted
            case unanswered
            case durationMs = "duration_ms"
            case unknownDurations = "unknown_durations"
        }
    }

    /// All tools, the most called first.
    public struct ToolsResponse: Codable, Equatable, Sendable {
        public var items: [ToolUsage]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// A file, with counts of what was done to it.
    public struct TouchedFile: Codable, Equatable, Sendable {
        public var path: String
        public var sessions: Int
        public var calls: Int
        public var edits: Int
        public var lastAt: String?

        public enum CodingKeys: String, CodingKey {
            case path
            case sessions
            case calls
            case edits
            case lastAt = "last_at"
        }
    }

    /// Files, the last touched first.
    public struct TouchedFiles: Codable, Equatable, Sendable {
        public var items: [TouchedFile]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// A session in the trash.
    public struct TrashedSession: Codable, Equatable, Sendable {
        public var id: String
        public var title: String?
        public var trashedAt: String
        public var forgottenAt: String

        public enum CodingKeys: String, CodingKey {
            case id
            case title
            case trashedAt = "trashed_at"
            case forgottenAt = "forgotten_at"
        }
    }

    /// What somebody has in the trash.
    public struct TrashedSessions: Codable, Equatable, Sendable {
        public var items: [TrashedSession]

        public enum CodingKeys: String, CodingKey {
            case items
        }
    }

    /// The model begins to answer (R-K18).
    public struct TurnStarted: Codable, Equatable, Sendable {
        /// One of: turn-start.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
        }
    }

    /// What these UI messages cannot say.
    public struct UIMessageLoss: Codable, Equatable, Sendable {
        public var feature: String
        public var path: String
        public var reason: String

        public enum CodingKeys: String, CodingKey {
            case feature
            case path
            case reason
        }
    }

    /// A piece of a session as AI SDK's UI messages: made of stored bodies, so this class only describes it.
    public struct UIMessagePage: Codable, Equatable, Sendable {
        public var messages: [[String: JSONValue]]
        public var hasMore: Bool
        public var nextCursor: String?
        public var losses: [UIMessageLoss]

        public enum CodingKeys: String, CodingKey {
            case messages
            case hasMore = "has_more"
            case nextCursor = "next_cursor"
            case losses
        }
    }

    /// A tool call without a final result.
    public struct UnfinishedCall: Codable, Equatable, Sendable {
        public var toolCallId: String
        public var toolName: String
        public var kind: String
        public var state: String
        public var startedAt: String?
        public var summary: String?

        public enum CodingKeys: String, CodingKey {
            case toolCallId = "tool_call_id"
            case toolName = "tool_name"
            case kind
            case state
            case startedAt = "started_at"
            case summary
        }
    }

    /// A block whose kind this version does not know: `kind` is its own word for itself, `data` its exact JSON.
    public struct UnknownPart: Codable, Equatable, Sendable {
        /// One of: unknown.
        public var type: String
        public var id: String?
        public var provider: ProviderData?
        public var metadata: [String: JSONValue]?
        public var kind: String
        public var data: JSONValue

        public enum CodingKeys: String, CodingKey {
            case type
            case id
            case provider
            case metadata
            case kind
            case data
        }
    }

    /// Tokens of one model call.
    public struct Usage: Codable, Equatable, Sendable {
        public var input: Int?
        public var cacheRead: Int?
        public var cacheWrite5m: Int?
        public var cacheWrite1h: Int?
        public var cacheWrite: Int?
        public var output: Int?
        public var reasoning: Int?
        public var toolPrompt: Int?
        public var serviceTier: String?
        public var speed: String?
        public var region: String?
        public var webSearches: Int?
        public var webFetches: Int?
        /// One of: estimated, exact, lower_bound.
        public var exactness: String?
        public var requests: [Usage]?

        public enum CodingKeys: String, CodingKey {
            case input
            case cacheRead = "cache_read"
            case cacheWrite5m = "cache_write_5m"
            case cacheWrite1h = "cache_write_1h"
            case cacheWrite = "cache_write"
            case output
            case reasoning
            case toolPrompt = "tool_prompt"
            case serviceTier = "service_tier"
            case speed
            case region
            case webSearches = "web_searches"
            case webFetches = "web_fetches"
            case exactness
            case requests
        }
    }

    /// One of the five-hour windows of Claude's limits. What it will be is known only of the one that is running.
    public struct UsageBlock: Codable, Equatable, Sendable {
        public var start: String
        public var end: String
        public var isRunning: Bool
        public var tokensPerMinute: Double?
        public var costPerHour: Double?
        public var projectedTokens: Int?
        public var projectedCost: Double?

        public enum CodingKeys: String, CodingKey {
            case start
            case end
            case isRunning = "is_running"
            case tokensPerMinute = "tokens_per_minute"
            case costPerHour = "cost_per_hour"
            case projectedTokens = "projected_tokens"
            case projectedCost = "projected_cost"
        }
    }

    /// What the running day, week or month has cost of the user's budget for it, whatever the report is about.
    public struct UsageBudget: Codable, Equatable, Sendable {
        /// One of: day, month, week.
        public var period: String
        public var name: String
        public var limit: Double
        public var spent: Double
        public var unpricedCalls: Int
        public var isExceeded: Bool

        public enum CodingKeys: String, CodingKey {
            case period
            case name
            case limit
            case spent
            case unpricedCalls = "unpriced_calls"
            case isExceeded = "is_exceeded"
        }
    }

    /// Two periods beside each other.
    public struct UsageComparison: Codable, Equatable, Sendable {
        public var zone: String
        public var earlier: ComparedPeriod
        public var later: ComparedPeriod
        public var costChange: Double?
        public var causes: [CostCause]
        public var models: [ComparedRow]
        public var projects: [ComparedRow]
        public var missing: [String]

        public enum CodingKeys: String, CodingKey {
            case zone
            case earlier
            case later
            case costChange = "cost_change"
            case causes
            case models
            case projects
            case missing
        }
    }

    /// What one thing, such as a model, has of the usage of a row.
    public struct UsagePart: Codable, Equatable, Sendable {
        public var name: String?
        public var label: String?
        public var totals: UsageTotals

        public enum CodingKeys: String, CodingKey {
            case name
            case label
            case totals
        }
    }

    /// Usage by something, and in all.
    public struct UsageReport: Codable, Equatable, Sendable {
        /// One of: agent, block, day, hour, model, month, project, session, subagent, week.
        public var by: String
        public var rows: [UsageRow]
        public var totals: UsageTotals
        public var contains: [String]
        public var missing: [String]
        public var zone: String
        public var thenBy: String?
        public var budgets: [UsageBudget]
        public var activeMs: Int?

        public enum CodingKeys: String, CodingKey {
            case by
            case rows
            case totals
            case contains
            case missing
            case zone
            case thenBy = "then_by"
            case budgets
            case activeMs = "active_ms"
        }
    }

    /// The usage of one hour, day, week, month, block, model, project, session, agent or subagent.
    public struct UsageRow: Codable, Equatable, Sendable {
        public var name: String?
        public var label: String?
        public var totals: UsageTotals
        public var parts: [UsagePart]
        public var block: UsageBlock?
        public var activeMs: Int?

        public enum CodingKeys: String, CodingKey {
            case name
            case label
            case totals
            case parts
            case block
            case activeMs = "active_ms"
        }
    }

    /// A sum of usages that says what it does not contain.
    public struct UsageTotal: Codable, Equatable, Sendable {
        public var usage: Usage?
        public var calls: Int?
        public var unknownCalls: Int?
        public var coveredCalls: Int?

        public enum CodingKeys: String, CodingKey {
            case usage
            case calls
            case unknownCalls = "unknown_calls"
            case coveredCalls = "covered_calls"
        }
    }

    /// Tokens and US dollars of many model calls, and how many calls these sums do not contain.
    public struct UsageTotals: Codable, Equatable, Sendable {
        public var calls: Int
        public var unknownCalls: Int
        public var coveredCalls: Int
        public var sessionTotals: Int
        public var unpricedCalls: Int
        public var lowerBoundCalls: Int
        public var estimatedCalls: Int
        public var tokens: Int
        public var input: Int
        public var cacheRead: Int
        public var cacheWrite5m: Int
        public var cacheWrite1h: Int
        public var cacheWrite: Int
        public var output: Int
        public var reasoning: Int
        public var toolPrompt: Int
        public var cost: Double?
        public var reportedCost: Double?

        public enum CodingKeys: String, CodingKey {
            case calls
            case unknownCalls = "unknown_calls"
            case coveredCalls = "covered_calls"
            case sessionTotals = "session_totals"
            case unpricedCalls = "unpriced_calls"
            case lowerBoundCalls = "lower_bound_calls"
            case estimatedCalls = "estimated_calls"
            case tokens
            case input
            case cacheRead = "cache_read"
            case cacheWrite5m = "cache_write_5m"
            case cacheWrite1h = "cache_write_1h"
            case cacheWrite = "cache_write"
            case output
            case reasoning
            case toolPrompt = "tool_prompt"
            case cost
            case reportedCost = "reported_cost"
        }
    }

    /// A person.
    public struct User: Codable, Equatable, Sendable {
        public var id: String
        public var name: String
        public var email: String?

        public enum CodingKeys: String, CodingKey {
            case id
            case name
            case email
        }
    }

    /// What the user said: texts joined by newlines (R-K12).
    public struct UserShown: Codable, Equatable, Sendable {
        /// One of: user.
        public var type: String
        public var position: Int?
        public var createdAt: String?
        public var messageId: String?
        public var turn: Int?
        public var step: Int?
        public var fate: Fate?
        public var text: String?
        public var images: [FilePart]?
        public var files: [FilePart]?

        public enum CodingKeys: String, CodingKey {
            case type
            case position
            case createdAt = "created_at"
            case messageId = "message_id"
            case turn
            case step
            case fate
            case text
            case images
            case files
        }
    }

    /// A piece of a session: made of stored frames, so this class only describes it.
    public struct WindowPage: Codable, Equatable, Sendable {
        public var items: [Message]
        public var rows: [MessageRow]
        public var events: [Event]
        public var hasBefore: Bool
        public var hasAfter: Bool

        public enum CodingKeys: String, CodingKey {
            case items
            case rows
            case events
            case hasBefore = "has_before"
            case hasAfter = "has_after"
        }
    }

    /// One of several kinds, by its field `type`; `other` is one of a newer server.
    public enum Event: Codable, Equatable, Sendable {
        case toolResult(ToolResultEvent)
        case compaction(CompactionEvent)
        case rewind(RewindEvent)
        case interrupt(InterruptEvent)
        case error(ErrorEvent)
        case runMetadata(RunMetadataEvent)
        case record(RecordEvent)
        case other(JSONValue)

        private enum Tag: String, CodingKey { case tag = "type" }

        public init(from decoder: any Decoder) throws {
            switch try decoder.container(keyedBy: Tag.self).decode(String.self, forKey: .tag) {
            case "tool-result": self = .toolResult(try ToolResultEvent(from: decoder))
            case "compaction": self = .compaction(try CompactionEvent(from: decoder))
            case "rewind": self = .rewind(try RewindEvent(from: decoder))
            case "interrupt": self = .interrupt(try InterruptEvent(from: decoder))
            case "error": self = .error(try ErrorEvent(from: decoder))
            case "run-metadata": self = .runMetadata(try RunMetadataEvent(from: decoder))
            case "record": self = .record(try RecordEvent(from: decoder))
            default: self = .other(try JSONValue(from: decoder))
            }
        }

        public func encode(to encoder: any Encoder) throws {
            switch self {
            case .toolResult(let value): try value.encode(to: encoder)
            case .compaction(let value): try value.encode(to: encoder)
            case .rewind(let value): try value.encode(to: encoder)
            case .interrupt(let value): try value.encode(to: encoder)
            case .error(let value): try value.encode(to: encoder)
            case .runMetadata(let value): try value.encode(to: encoder)
            case .record(let value): try value.encode(to: encoder)
            case .other(let value): try value.encode(to: encoder)
            }
        }
    }

    /// One of several kinds, by its field `type`; `other` is one of a newer server.
    public enum Part: Codable, Equatable, Sendable {
        case text(TextPart)
        case reasoning(ReasoningPart)
        case toolCall(ToolCallPart)
        case file(FilePart)
        case sourceUrl(SourceUrlPart)
        case sourceDocument(SourceDocumentPart)
        case data(DataPart)
        case unknown(UnknownPart)
        case other(JSONValue)

        private enum Tag: String, CodingKey { case tag = "type" }

        public init(from decoder: any Decoder) throws {
            switch try decoder.container(keyedBy: Tag.self).decode(String.self, forKey: .tag) {
            case "text": self = .text(try TextPart(from: decoder))
            case "reasoning": self = .reasoning(try ReasoningPart(from: decoder))
            case "tool-call": self = .toolCall(try ToolCallPart(from: decoder))
            case "file": self = .file(try FilePart(from: decoder))
            case "source-url": self = .sourceUrl(try SourceUrlPart(from: decoder))
            case "source-document": self = .sourceDocument(try SourceDocumentPart(from: decoder))
            case "data": self = .data(try DataPart(from: decoder))
            case "unknown": self = .unknown(try UnknownPart(from: decoder))
            default: self = .other(try JSONValue(from: decoder))
            }
        }

        public func encode(to encoder: any Encoder) throws {
            switch self {
            case .text(let value): try value.encode(to: encoder)
            case .reasoning(let value): try value.encode(to: encoder)
            case .toolCall(let value): try value.encode(to: encoder)
            case .file(let value): try value.encode(to: encoder)
            case .sourceUrl(let value): try value.encode(to: encoder)
            case .sourceDocument(let value): try value.encode(to: encoder)
            case .data(let value): try value.encode(to: encoder)
            case .unknown(let value): try value.encode(to: encoder)
            case .other(let value): try value.encode(to: encoder)
            }
        }
    }

    /// One of several kinds, by its field `type`; `other` is one of a newer server.
    public enum Shown: Codable, Equatable, Sendable {
        case user(UserShown)
        case developer(DeveloperShown)
        case turnStart(TurnStarted)
        case image(ImageShown)
        case assistant(AnswerShown)
        case toolCall(ToolCallShown)
        case toolResult(ToolResultShown)
        case interrupt(InterruptShown)
        case error(ErrorShown)
        case runMetadata(RunMetadataShown)
        case responseMetadata(ResponseMetadata)
        case compaction(CompactionShown)
        case rewind(RewindShown)
        case other(JSONValue)

        private enum Tag: String, CodingKey { case tag = "type" }

        public init(from decoder: any Decoder) throws {
            switch try decoder.container(keyedBy: Tag.self).decode(String.self, forKey: .tag) {
            case "user": self = .user(try UserShown(from: decoder))
            case "developer": self = .developer(try DeveloperShown(from: decoder))
            case "turn-start": self = .turnStart(try TurnStarted(from: decoder))
            case "image": self = .image(try ImageShown(from: decoder))
            case "assistant": self = .assistant(try AnswerShown(from: decoder))
            case "tool-call": self = .toolCall(try ToolCallShown(from: decoder))
            case "tool-result": self = .toolResult(try ToolResultShown(from: decoder))
            case "interrupt": self = .interrupt(try InterruptShown(from: decoder))
            case "error": self = .error(try ErrorShown(from: decoder))
            case "run-metadata": self = .runMetadata(try RunMetadataShown(from: decoder))
            case "response-metadata": self = .responseMetadata(try ResponseMetadata(from: decoder))
            case "compaction": self = .compaction(try CompactionShown(from: decoder))
            case "rewind": self = .rewind(try RewindShown(from: decoder))
            default: self = .other(try JSONValue(from: decoder))
            }
        }

        public func encode(to encoder: any Encoder) throws {
            switch self {
            case .user(let value): try value.encode(to: encoder)
            case .developer(let value): try value.encode(to: encoder)
            case .turnStart(let value): try value.encode(to: encoder)
            case .image(let value): try value.encode(to: encoder)
            case .assistant(let value): try value.encode(to: encoder)
            case .toolCall(let value): try value.encode(to: encoder)
            case .toolResult(let value): try value.encode(to: encoder)
            case .interrupt(let value): try value.encode(to: encoder)
            case .error(let value): try value.encode(to: encoder)
            case .runMetadata(let value): try value.encode(to: encoder)
            case .responseMetadata(let value): try value.encode(to: encoder)
            case .compaction(let value): try value.encode(to: encoder)
            case .rewind(let value): try value.encode(to: encoder)
            case .other(let value): try value.encode(to: encoder)
            }
        }
    }
}
