/** A client that is written against the generated types alone: `node api_client.js ADDRESS TOKEN`. */

import createClient from "openapi-fetch";
import type { components, paths } from "./api";

declare const process: { argv: string[] };

type Message = components["schemas"]["Message"];
type ToolCallPart = components["schemas"]["ToolCallPart"];

const [address = "", token = ""] = process.argv.slice(2);
const answers: { method: string; path: string; status: number; text: string }[] = [];
const api = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });

api.use({
  async onResponse({ request, response }) {
    const path = decodeURIComponent(new URL(request.url).pathname);
    answers.push({ method: request.method, path, status: response.status, text: await response.clone().text() });
  },
});

function found<T>(answer: { data?: T; error?: { error: { message: string } } }): T {
  if (answer.data === undefined) throw new Error(answer.error?.error.message ?? "nothing was answered");
  return answer.data;
}

function textOf(message: Message): string {
  return (message.parts ?? []).map((part) => (part.type === "text" ? part.text : `<${part.type}>`)).join(" ");
}

const made = found(
  await api.POST("/api/sessions", {
    body: { agent: "ts-bot", external_id: "1", title: "Typed", metadata: { ticket: 5 }, ownership: { user: "ann" } },
  }),
);
const session = { params: { path: { session_id: made.id } } };

const call: ToolCallPart = {
  type: "tool-call",
  tool_call_id: "c1",
  tool_name: "search",
  input: { what: "hat" },
  started_at: "2026-11-20T09:30:12.345Z",
};
found(
  await api.POST("/api/sessions/{session_id}/messages", {
    ...session,
    body: {
      messages: [
        { id: "t1", role: "user", parts: [{ type: "text", text: "Where is the hat?" }] },
        { id: "t2", role: "assistant", parts: [{ type: "text", text: "I look." }], usage: { input: 10, output: 2 } },
      ],
    },
  }),
);
const called = found(
  await api.POST("/api/sessions/{session_id}/tool-calls", { ...session, body: { message_id: "t2", call } }),
);

const listed = found(await api.GET("/api/sessions", { params: { query: { limit: 10, sort: "created" } } }));
const windows: string[] = [];
for (const item of listed.items) {
  const window = found(
    await api.GET("/api/sessions/{session_id}/window", { params: { path: { session_id: item.id } } }),
  );
  windows.push(...window.items.map(textOf));
}
const calls = found(await api.GET("/api/tool-calls", { params: { query: { session: made.id } } }));
const opened = found(await api.GET("/api/sessions/{session_id}", session));
const refused = await api.GET("/api/sessions/{session_id}", { params: { path: { session_id: "ts-bot:2" } } });

// What may be missing must be asked for.

// @ts-expect-error A session may have no title.
export const title: string = opened.session.title;
// @ts-expect-error A message may have no parts.
export const parts: Message["parts"][number][] = called.message.parts;
// @ts-expect-error Null means unknown, and is no number.
export const duration: number = calls.items[0]?.duration_ms;
// @ts-expect-error A metadata's values may be anything.
export const ticket: number = made.metadata?.ticket;

// What may not be sent does not compile.

// @ts-expect-error A message has a role.
export const nobody: Message = { id: "t3" };
// @ts-expect-error There is no such role.
export const stranger: Message = { id: "t3", role: "robot" };
// @ts-expect-error The id of a session is its program's.
export const nameless: components["schemas"]["SessionBody"] = { agent: "ts-bot" };

console.log(
  JSON.stringify({
    answers,
    ids: listed.items.map((item) => item.id),
    title: opened.session.title ?? null,
    ticket: made.metadata?.ticket ?? null,
    windows,
    calls: calls.items.map((each) => `${each.tool_name} ${each.state}`),
    refused: refused.error?.error.type ?? null,
  }),
);
