// @vitest-environment happy-dom

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

/** A server that wants this key, and gives it for this code. */
function serve(wanted: { key: string }, code = "right") {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (address: string, options: RequestInit = {}) => {
    const key = new Headers(options.headers).get("authorization");
    asked.push(`${address} ${key}`);
    if (address === "/api/sign-in") {
      const given = JSON.parse(String(options.body)).code;
      return given === code
        ? Response.json({ key: wanted.key })
        : Response.json({ error: { message: "too old" } }, { status: 403 });
    }
    return key === `Bearer ${wanted.key}`
      ? Response.json({ answered: address })
      : Response.json({}, { status: 401 });
  });
  return asked;
}

let unfollow = () => {};

/** The module as a page finds it that is loaded now. */
async function load() {
  vi.resetModules();
  const { fetchSigned, followAccess, signIn } = await import("@/api/access");
  unfollow = followAccess();
  return { fetchSigned, signIn };
}

beforeEach(() => localStorage.clear());

afterEach(() => {
  unfollow();
  vi.unstubAllGlobals();
  history.replaceState(null, "", "/");
});

describe("the page's key", () => {
  it("comes with the first answer to the code of the address, which is gone from there at once", async () => {
    const asked = serve({ key: "k1" });
    history.replaceState(null, "", "/sessions/s1?turn=3#code=right");
    const { fetchSigned } = await load();
    expect(location.href).toMatch(/\/sessions\/s1\?turn=3$/);
    const answer = await fetchSigned("/api/status");
    expect(await answer.json()).toEqual({ answered: "/api/status" });
    expect(asked).toEqual(["/api/sign-in null", "/api/status Bearer k1"]);
    expect(localStorage.getItem("turnlog.key")).toBe("k1");
  });

  it("is asked for once and used again after a reload", async () => {
    localStorage.setItem("turnlog.key", "k1");
    const asked = serve({ key: "k1" });
    const { fetchSigned } = await load();
    await fetchSigned("/api/status");
    expect(asked).toEqual(["/api/status Bearer k1"]);
  });

  it("leaves anchors of messages alone", async () => {
    const asked = serve({ key: "k1" });
    history.replaceState(null, "", "/sessions/s1#msg_code=1");
    await load();
    expect(location.hash).toBe("#msg_code=1");
    expect(asked).toEqual([]);
  });

  it("keeps its own headers out of nobody's way", async () => {
    localStorage.setItem("turnlog.key", "k1");
    const sent: RequestInit[] = [];
    vi.stubGlobal("fetch", async (_: string, options: RequestInit) => {
      sent.push(options);
      return Response.json({});
    });
    const { fetchSigned } = await load();
    await fetchSigned("/api/x", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    expect(Object.fromEntries(new Headers(sent[0]?.headers))).toEqual({
      authorization: "Bearer k1",
      "content-type": "application/json",
      "x-turnlog-csrf": "1",
    });
    expect(sent[0]).toMatchObject({ method: "POST", body: "{}" });
  });
});

describe("a request that is refused", () => {
  it("waits until the user has signed in, and goes on", async () => {
    localStorage.setItem("turnlog.key", "old");
    serve({ key: "new" });
    const { fetchSigned, signIn } = await load();
    const answers = Promise.all([fetchSigned("/api/a"), fetchSigned("/api/b")]);
    await expect(signIn("wrong")).rejects.toThrow("too old");
    await signIn("  http://127.0.0.1:8765/#code=right \n");
    expect(await Promise.all((await answers).map((answer) => answer.json()))).toEqual([
      { answered: "/api/a" },
      { answered: "/api/b" },
    ]);
  });

  it("goes on when another window of this browser has signed in", async () => {
    serve({ key: "new" });
    const { fetchSigned } = await load();
    const answer = fetchSigned("/api/a");
    await new Promise((done) => setTimeout(done));
    window.dispatchEvent(new StorageEvent("storage", { key: "turnlog.key", newValue: "new" }));
    expect((await answer).status).toBe(200);
  });

  it("goes on when the address of the window gets a code", async () => {
    serve({ key: "new" });
    const { fetchSigned } = await load();
    const answer = fetchSigned("/api/a");
    await new Promise((done) => setTimeout(done));
    history.replaceState(null, "", "/#code=right");
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    expect((await answer).status).toBe(200);
    expect(location.hash).toBe("");
  });

  it("ends when nobody wants it any more", async () => {
    serve({ key: "new" });
    const { fetchSigned } = await load();
    const own = new AbortController();
    const answer = fetchSigned("/api/a", { signal: own.signal });
    await new Promise((done) => setTimeout(done));
    own.abort(new Error("left"));
    await expect(answer).rejects.toThrow("left");
  });
});
