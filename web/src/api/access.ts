/**
 * The page's key: proof that this browser was signed in. It goes with every request as a header, and is kept for this
 * address and port alone; a cookie would go to every port of the machine.
 *
 * A request that is refused without it waits until the user has signed in, and is then made again. So nothing else of
 * the page knows of it, and everything goes on where it was.
 */

import { useSyncExternalStore } from "react";

const STORED = "turnlog.key";
const SIGN_IN = "/api/sign-in";
const CODE = /(?:^|#)code=([\w-]+)$/;

interface Access {
  /** Whether a request waits for the user to sign in. */
  isAsked: boolean;
  /** Why the code of the page's own address was not taken. */
  problem: string | null;
}

let key = readStored();
let access: Access = { isAsked: false, problem: null };
let redeeming: Promise<void> | null = null;
const listeners = new Set<() => void>();

/** As `fetch`, with the page's key. A request that needs another one waits for it. */
export async function fetchSigned(path: string, options: RequestInit = {}): Promise<Response> {
  await redeeming;
  while (true) {
    const used = key;
    const headers = new Headers(options.headers);
    if (used) headers.set("authorization", `Bearer ${used}`);
    // A hub wants it of browsers: forms of another site cannot send it.
    if (options.method && options.method !== "GET") headers.set("x-turnlog-csrf", "1");
    const response = await fetch(path, { ...options, headers });
    if (response.status !== 401) return response;
    const page = response.headers.get("x-turnlog-sign-in");
    if (page?.startsWith("/")) {
      location.assign(`${page}?to=${encodeURIComponent(location.pathname + location.search)}`);
      return new Promise(() => {});
    }
    await otherKey(used, options.signal);
  }
}

/** Takes the code out of the page's address, and signs in with it. */
function redeemAddress(): void {
  const code = codeIn(location.hash);
  if (!code) return;
  // Before anything else may read or keep the address.
  history.replaceState(history.state, "", location.pathname + location.search);
  redeeming = signIn(code)
    .catch((error: Error) => update({ problem: error.message }))
    .finally(() => {
      redeeming = null;
    });
}

/** Signs in with a code, or with a link that holds one. Raises an Error with the server's message. */
export async function signIn(text: string): Promise<void> {
  const response = await fetch(SIGN_IN, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code: codeIn(text.trim()) ?? text.trim() }),
  });
  const answer = (await response.json()) as { key?: string; error?: { message?: string } };
  // 409: the server asks nobody to sign in.
  if (response.status === 409) return;
  if (!answer.key) throw new Error(answer.error?.message ?? response.statusText);
  store(answer.key);
  changeKey(answer.key);
}

export function useAccess(): Access {
  return useSyncExternalStore(subscribe, () => access);
}

/** Follows the address, and what other windows of this browser do, until the returned function is called. */
export function followAccess(): () => void {
  const follow = ({ key: name, newValue }: StorageEvent) => {
    if (name === STORED && newValue) changeKey(newValue);
  };
  redeemAddress();
  window.addEventListener("hashchange", redeemAddress);
  window.addEventListener("storage", follow);
  return () => {
    window.removeEventListener("hashchange", redeemAddress);
    window.removeEventListener("storage", follow);
  };
}

function codeIn(text: string): string | null {
  return CODE.exec(text)?.[1] ?? null;
}

/** Resolves once the key is another one than that which was refused. */
function otherKey(refused: string | null, signal: AbortSignal | null | undefined): Promise<void> {
  if (key !== refused) return Promise.resolve();
  update({ isAsked: true });
  return new Promise((resolve, reject) => {
    const abort = () => {
      listeners.delete(look);
      reject(signal?.reason);
    };
    const look = () => {
      if (key === refused) return;
      listeners.delete(look);
      signal?.removeEventListener("abort", abort);
      resolve();
    };
    listeners.add(look);
    signal?.addEventListener("abort", abort);
  });
}

function changeKey(other: string): void {
  key = other;
  update({ isAsked: false, problem: null });
}

function update(change: Partial<Access>): void {
  access = { ...access, ...change };
  for (const listener of [...listeners]) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function readStored(): string | null {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}

function store(value: string): void {
  try {
    localStorage.setItem(STORED, value);
  } catch {
    // Forbidden storage: the sign-in lasts as long as the page.
  }
}
