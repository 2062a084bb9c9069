/** Requests to the server. Every answer is JSON; every failure is an ApiError with the server's message. */

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
  error?: { message?: string };
}

export async function getJson<Answer>(
  path: string,
  parameters: Parameters,
  signal?: AbortSignal,
): Promise<Answer> {
  const response = await fetch(path + queryString(parameters), signal ? { signal } : {});
  if (!response.ok) throw new ApiError(response.status, await problemOf(response));
  return (await response.json()) as Answer;
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  const response = await fetch(path, signal ? { signal } : {});
  if (!response.ok) throw new ApiError(response.status, await problemOf(response));
  return response.text();
}

export async function sendJson<Answer>(
  method: "PATCH" | "POST" | "DELETE",
  path: string,
  body?: unknown,
): Promise<Answer> {
  const response = await fetch(path, {
    method,
    ...(body !== undefined && {
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  });
  if (!response.ok) throw new ApiError(response.status, await problemOf(response));
  return (await response.json()) as Answer;
}

/** "?a=1&b=2" of what is set; "" of nothing. */
export function queryString(parameters: Parameters): string {
  const set = Object.entries(parameters).filter(([, value]) => value != null && value !== "");
  const query = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
  return query && `?${query}`;
}

async function problemOf(response: Response): Promise<string> {
  const body = (await response.json().catch(() => null)) as ErrorResponse | null;
  return body?.error?.message ?? `${response.status} ${response.statusText}`.trim();
}
