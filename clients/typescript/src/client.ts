/** A client of a turnlog server or hub. It has no dependencies, and works wherever `fetch` does. */

import type {
  ErrorResponse,
  Me,
  MembershipsResponse,
  MessageResponse,
  MessagesBody,
  SearchResponse,
  SessionBody,
  SessionItem,
  SessionPage,
  SessionResponse,
  Task,
  TaskBody,
  TasksResponse,
  ToolCallBody,
  ToolCallPage,
  UsageReport,
  WindowPage,
} from "./models.js";

export type * from "./models.js";

/** An answer that is not a success. */
export class TurnlogError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
    /** What is wrong with which field. */
    readonly detail: { field: string; reason: string }[] = [],
  ) {
    super(message);
  }
}

/** Parameters of an address; what is undefined is left out. */
export type Query = Record<string, string | number | boolean | undefined>;

export class TurnlogClient {
  readonly #base: string;
  readonly #token: string | undefined;

  /** `token` is a personal token of a hub (`tlp_…`), or that of a server. */
  constructor(base: string, token?: string) {
    this.#base = base.replace(/\/+$/, "");
    this.#token = token;
  }

  /** Who the token is of; only a hub knows. */
  me(): Promise<Me> {
    return this.#ask("GET", "/hub/v1/me");
  }

  sessions(query: Query = {}): Promise<SessionPage> {
    return this.#ask("GET", "/api/sessions", { query });
  }

  /** All sessions that match, page after page. */
  async *allSessions(query: Query = {}): AsyncGenerator<SessionItem> {
    let cursor: string | null | undefined;
    do {
      const page = await this.sessions({ ...query, cursor: cursor ?? undefined });
      yield* page.items;
      cursor = page.next_cursor;
    } while (cursor);
  }

  session(id: string): Promise<SessionResponse> {
    return this.#ask("GET", `/api/sessions/${path(id)}`);
  }

  /** Create a session, or change what is known of it. */
  saveSession(body: SessionBody): Promise<SessionItem> {
    return this.#ask("POST", "/api/sessions", { body });
  }

  deleteSession(id: string): Promise<void> {
    return this.#ask("DELETE", `/api/sessions/${path(id)}`);
  }

  window(id: string, query: Query = {}): Promise<WindowPage> {
    return this.#ask("GET", `/api/sessions/${path(id)}/window`, { query });
  }

  message(id: string): Promise<MessageResponse> {
    return this.#ask("GET", `/api/messages/${path(id)}`);
  }

  /** Create messages, or replace those of their ids. */
  saveMessages(id: string, body: MessagesBody): Promise<MembershipsResponse> {
    return this.#ask("POST", `/api/sessions/${path(id)}/messages`, { body });
  }

  toolCalls(query: Query = {}): Promise<ToolCallPage> {
    return this.#ask("GET", "/api/tool-calls", { query });
  }

  saveToolCall(id: string, body: ToolCallBody): Promise<MessageResponse> {
    return this.#ask("POST", `/api/sessions/${path(id)}/tool-calls`, { body });
  }

  tasks(): Promise<TasksResponse> {
    return this.#ask("GET", "/api/tasks");
  }

  createTask(body: TaskBody): Promise<Task> {
    return this.#ask("POST", "/api/tasks", { body });
  }

  renameTask(id: string, name: string): Promise<Task> {
    return this.#ask("PATCH", `/api/tasks/${path(id)}`, { body: { name } });
  }

  deleteTask(id: string): Promise<void> {
    return this.#ask("DELETE", `/api/tasks/${path(id)}`);
  }

  usage(query: Query = {}): Promise<UsageReport> {
    return this.#ask("GET", "/api/usage", { query });
  }

  search(q: string, query: Query = {}): Promise<SearchResponse> {
    return this.#ask("GET", "/api/search", { query: { q, ...query } });
  }

  async #ask<Answer>(method: string, address: string, given: { query?: Query; body?: unknown } = {}): Promise<Answer> {
    const url = new URL(this.#base + address);
    for (const [name, value] of Object.entries(given.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = { accept: "application/json" };
    if (this.#token) headers["authorization"] = `Bearer ${this.#token}`;
    const body = given.body === undefined ? null : JSON.stringify(given.body);
    if (body !== null) headers["content-type"] = "application/json";
    const answer = await fetch(url, { method, headers, body });
    const text = await answer.text();
    if (!answer.ok) throw toError(answer.status, text);
    // A 204 has no body.
    return (text === "" ? undefined : JSON.parse(text)) as Answer;
  }
}

/** Ids contain colons and may contain slashes, which addresses keep. */
function path(id: string): string {
  return id.split("/").map(encodeURIComponent).join("/");
}

function toError(status: number, text: string): TurnlogError {
  try {
    const { error } = JSON.parse(text) as ErrorResponse;
    return new TurnlogError(status, error.type, error.message, error.detail ?? []);
  } catch {
    return new TurnlogError(status, "unknown", text.slice(0, 200));
  }
}
