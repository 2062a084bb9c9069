/** Requests to the server. Every failure is an ApiError with the server's message. */

import { fetchSigned } from "./access";

export type Parameters = Record<string, string | number | boolean | null | undefined>;

export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

interface ErrorResponse {
  error?: { message?: string; detail?: { field: string; reason: string }[] | null };
}

/** The answer to a request. Raises an ApiError for one that is not a success. */
export async function request(path: string, options: RequestInit = {}): Promise<Response> {
  const response = await fetchSigned(path, options);
  if (!response.ok) throw new ApiError(response.status, await problemOf(response));
  return response;
}

export async function getJson<Answer>(
  path: string,
  parameters: Parameters,
  signal?: AbortSignal,
): Promise<Answer> {
  const response = await request(path + queryString(parameters), signal ? { signal } : {});
  return (await response.json()) as Answer;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  const response = await request(path, signal ? { signal } : {});
  return response.text();
}

export async function sendJson<Answer>(
  method: "PATCH" | "POST" | "PUT" | "DELETE",
  path: string,
  body?: unknown,
): Promise<Answer> {
  const response = await request(path, {
    method,
    ...(body !== undefined && {
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  });
  return (response.status === 204 ? undefined : await response.json()) as Answer;
}

/** "?a=1&b=2" of what is set; "" of nothing. */
export function queryString(parameters: Parameters): string {
  const set = Object.entries(parameters).filter(([, value]) => value != null && value !== "");
  const query = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return query && `?${query}`;
}

async function problemOf(response: Response): Promise<string> {
  const body = (await response.json().catch(() => null)) as ErrorResponse | null;
  const wrong = body?.error?.detail?.[0];
  // Of a query or a name, the sentence says all; of other parameters, their names do.
  if (wrong && (wrong.field === "q" || wrong.reason.startsWith("there is no "))) {
    return wrong.reason.charAt(0).toUpperCase() + wrong.reason.slice(1);
  }
  return body?.error?.message ?? `${response.status} ${response.statusText}`.trim();
}
