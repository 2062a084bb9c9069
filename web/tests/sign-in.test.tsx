// @vitest-environment happy-dom

import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { fetchSigned } from "@/api/access";
import { SignInWhereAsked } from "@/shell/sign-in";
import { renderAt } from "./render";

let wanted = "k1";

beforeEach(() => {
  vi.stubGlobal("fetch", async (address: string, options: RequestInit = {}) => {
    if (address === "/api/sign-in") {
      const right = JSON.parse(String(options.body)).code === "right";
      return right
        ? Response.json({ key: wanted })
        : Response.json({ error: { message: "this link is too old" } }, { status: 403 });
    }
    const key = new Headers(options.headers).get("authorization");
    return Response.json({}, { status: key === `Bearer ${wanted}` ? 200 : 401 });
  });
});

describe("the sign-in screen", () => {
  it("stands over the page until a code is taken, and the page goes on", async () => {
    wanted = "k2";
    renderAt("/sessions/s1#m3", <SignInWhereAsked />);
    expect(screen.queryByRole("dialog")).toBeNull();
    let answer: Response | undefined;
    act(() => {
      fetchSigned("/api/status").then((found) => {
        answer = found;
      });
    });
    const field = await screen.findByRole("textbox");
    expect(screen.getByRole("dialog").textContent).toContain("turnlog open");
    await userEvent.type(field, "wrong{Enter}");
    expect((await screen.findByRole("alert")).textContent).toBe("This link is too old");
    expect(answer).toBeUndefined();
    await userEvent.clear(field);
    await userEvent.type(field, "http://127.0.0.1:8765/#code=right{Enter}");
    await waitFor(() => expect(answer?.status).toBe(200));
    expect(screen.queryByRole("dialog")).toBeNull();
    expect(location.pathname + location.hash).toBe("/sessions/s1#m3");
  });
});
