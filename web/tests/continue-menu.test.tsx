// @vitest-environment happy-dom

import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { SessionItem } from "@/api/types";
import { FileLines } from "@/files/file-lines";
import { Commits } from "@/session/page/commits";
import { ContinueMenu, ResumeMenu } from "@/session/page/continue-menu";
import { renderAt } from "./render";

const SESSION: SessionItem = { id: "claude-code:a", agent: "claude-code", external_id: "a" } as SessionItem;
const LINK = { session_id: "claude-code:a", message_id: "m", title: "Tax", turn: 2, confidence: "exact" };

const ANSWERS: Record<string, unknown> = {
  "/api/handoffs": {
    items: [
      { agent: "codex", display_name: "Codex", is_installed: true },
      { agent: "gemini-cli", display_name: "Gemini CLI", is_installed: false },
      { agent: "claude-code", display_name: "Claude Code", is_installed: true },
    ],
  },
  "/handoff": { session_id: "codex:b", losses: ["1 piece of reasoning is left out"], notes: [] },
  "/commits": {
    commits: [{ hash: "0a1b2c3d", subject: "Add the tax", deed: "committed", position: 7, turn: 2 }],
    pull_requests: [
      { url: "https://forge.example/a/b/pull/12", repository: "forge.example/a/b", number: 12 },
    ],
    unindexed: 0,
  },
  "/api/files/lines": {
    path: "/shop/till.py",
    lines: [
      { first: 1, last: 3, commit: "f".repeat(40), link: null },
      { first: 4, last: 4, commit: null, link: LINK },
    ],
  },
};

beforeEach(() => {
  vi.stubGlobal("fetch", async (address: string) => {
    const known = Object.keys(ANSWERS).find((path) => address.split("?")[0]?.endsWith(path));
    return Response.json(known ? ANSWERS[known] : {}, { status: known ? 200 : 404 });
  });
});

afterEach(() => {
  vi.restoreAllMocks();
});

describe("a session", () => {
  it("continues in other agents that are installed, by a button only where the server takes prompts", async () => {
    renderAt("/", <ContinueMenu session={SESSION} prompts />);
    await userEvent.click(await screen.findByRole("button", { name: "Hand it over now", hidden: true }));
    expect(await screen.findByText("1 piece of reasoning is left out")).toBeDefined();
    expect(screen.getByRole("button", { name: "Open the new session", hidden: true })).toBeDefined();
    expect(screen.queryByText("Gemini CLI")).toBeNull();
    expect(screen.queryByText("Claude Code")).toBeNull();
  });

  it("shows the command that resumes it, and no button without one", () => {
    const resume = { folder: "/my shop", command: ["claude", "--resume", "a"], problem: null };
    const shown = renderAt("/", <ResumeMenu session={{ ...SESSION, resume }} />);
    expect(screen.getByText("cd '/my shop' && claude --resume a")).toBeDefined();
    shown.unmount();
    renderAt(
      "/",
      <ResumeMenu session={{ ...SESSION, resume: { ...resume, problem: "the folder is gone" } }} />,
    );
    expect(screen.getByText("cd '/my shop' && claude --resume a")).toBeDefined();
    expect(screen.getByText("the folder is gone")).toBeDefined();
    const { container } = renderAt("/", <ResumeMenu session={SESSION} />);
    expect(container.textContent).toBe("");
  });

  it("has no button to hand it over where the server takes no prompts", async () => {
    renderAt("/", <ContinueMenu session={SESSION} prompts={false} />);
    expect(await screen.findByText("Codex")).toBeDefined();
    expect(screen.queryByText("Hand it over now")).toBeNull();
  });

  it("shows its commits and pull requests, and leads to the call", async () => {
    const onJump = vi.fn();
    renderAt("/", <Commits sessionId="claude-code:a" messages={3} onJump={onJump} />);
    await userEvent.click(await screen.findByText("Add the tax"));
    expect(onJump).toHaveBeenCalledWith(7);
    expect(screen.getByText("#12 a/b").closest("a")?.href).toBe("https://forge.example/a/b/pull/12");
  });
});

describe("a file", () => {
  it("says on demand which session each line came from", async () => {
    renderAt("/", <FileLines path="/shop/till.py" />);
    await userEvent.click(screen.getByRole("button"));
    expect(await screen.findByText("1 of 4 lines came from 1 session.")).toBeDefined();
    expect(screen.getByText("no session")).toBeDefined();
    expect(screen.getByText("not committed")).toBeDefined();
  });
});
