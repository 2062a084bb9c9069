/** Components in a document without layout, with the answers of a server that is not there. */

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import type { ReactNode } from "react";
import { vi } from "vitest";
import { NOTHING_HIDDEN } from "@/session/blocks";
import { DisclosureProvider } from "@/session/disclosure";
import { SessionContext, type SessionContextValue } from "@/session/session-context";

/** The answer to a request: a value as JSON, or a status with the server's message. */
type Answer = { json: unknown } | { status: number; message: string };

/** Requests that were made: "GET /api/sessions?…", with the body of those that send one. */
export interface Requests {
  lines: string[];
  bodies: unknown[];
}

/** Answers each request by the first address that it begins with; a request without an answer is a 404. */
export function answerWith(answers: Record<string, Answer>): Requests {
  const requests: Requests = { lines: [], bodies: [] };
  vi.stubGlobal("fetch", async (address: string, options: RequestInit = {}) => {
    const method = options.method ?? "GET";
    requests.lines.push(`${method} ${address}`);
    if (typeof options.body === "string") requests.bodies.push(JSON.parse(options.body));
    const known = Object.entries(answers).find(([begin]) => `${method} ${address}`.startsWith(begin));
    const answer = known?.[1] ?? { status: 404, message: "not found" };
    return "json" in answer
      ? Response.json(answer.json)
      : Response.json({ error: { code: "test", message: answer.message } }, { status: answer.status });
  });
  return requests;
}

/** Draws a page or a piece of one at an address. */
export function renderAt(address: string, element: ReactNode) {
  history.replaceState(null, "", address);
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  return render(<QueryClientProvider client={queries}>{element}</QueryClientProvider>);
}

/** Draws a piece of a session. */
export function renderInSession(element: ReactNode, context: Partial<SessionContextValue> = {}) {
  const value: SessionContextValue = {
    sessionId: "s1",
    level: null,
    cwd: "/home/ada/bank",
    running: null,
    linked: null,
    flashing: false,
    ChildSession: () => null,
    pins: null,
    hidden: NOTHING_HIDDEN,
    subagents: new Set(),
    knowsSubagents: false,
    goTo: () => undefined,
    ...context,
  };
  return renderAt(
    "/",
    <SessionContext value={value}>
      <DisclosureProvider>{element}</DisclosureProvider>
    </SessionContext>,
  );
}
