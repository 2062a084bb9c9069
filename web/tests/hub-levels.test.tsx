// @vitest-environment happy-dom

import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Message, SessionItem } from "@/api/types";
import { LevelLabel, type UploadLevel } from "@/hub/level";
import { ShareButton } from "@/hub/share-button";
import { MessageView } from "@/session/message/message-view";
import { ResumeMenu } from "@/session/page/continue-menu";
import { answerWith, renderAt, renderInSession } from "./render";
import { message, placement, session } from "./samples";

const HUB = {
  "GET /api/status": { json: { hub: true, sync: { state: "off" }, search: { unindexed: 0 } } },
  "GET /hub/v1/me": { json: { user: { id: "u-1", name: "Ana" }, role: "owner", scopes: ["read", "push"] } },
  "GET /hub/v1/people": { json: { items: [{ id: "u-1", name: "Ana", machines: ["laptop"], sessions: 1 }] } },
};

beforeEach(() => {
  answerWith(HUB);
});

afterEach(cleanup);

/** What is shown of a message of a session at this level. */
function shown(level: UploadLevel | null, fields: Partial<Message>): string {
  const entry = {
    kind: "message",
    key: "m1",
    position: 0,
    message: message(fields),
    placement: placement(),
  } as const;
  return renderInSession(<MessageView entry={entry} />, { level }).container.textContent ?? "";
}

describe("a message of a hub without words", () => {
  it.each(["user", "assistant"] as const)("says why the words of the %s are not there", (role) => {
    expect(shown("metrics", { role })).toContain("Not sent: this session came at the upload level metrics.");
    expect(shown("redacted", { role })).toContain("Withheld until its machine pushes again");
  });

  it("is an empty answer where the agent gave one", () => {
    const given = { role: "assistant", model: "opus", created_at: "2026-11-27T10:00:00Z" } as const;
    expect(shown("full", given)).toContain("Empty answer.");
    expect(shown(null, { role: "assistant" })).toContain("Empty answer.");
  });

  it("shows the words that it has", () => {
    const parts = [{ type: "text", text: "now a coat" } as const];
    expect(shown("redacted", { role: "user", parts })).toBe(shown(null, { role: "user", parts }));
  });
});

describe("a session of a hub", () => {
  const resume = { folder: "/home/ana/shop", command: ["claude", "--resume", "one"], problem: null };
  const item = (fields: Partial<SessionItem>) =>
    session({ resume, ownership: { user: "u-1", machine: "laptop" }, ...fields });

  it("has its level in a list, and none where no machine sent it", () => {
    renderAt("/", <LevelLabel session={item({ upload_level: "metrics" })} />);
    expect(screen.getByText("level metrics").title).toContain("no title, path or word");
    expect(renderAt("/", <LevelLabel session={item({})} />).container.textContent).toBe("");
  });

  it("says on which machine it goes on, and how it comes to another one", async () => {
    renderAt(
      "/",
      <ResumeMenu session={item({ id: "claude-code:one~m-0123456789abcdef", upload_level: "full" })} />,
    );
    expect(await screen.findByText("On laptop, in /home/ana/shop")).toBeDefined();
    expect(screen.getByText("cd /home/ana/shop && claude --resume one")).toBeDefined();
    expect(screen.getByText("turnlog hub pull 'claude-code:one~m-0123456789abcdef'")).toBeDefined();
    expect(screen.getByText("turnlog resume claude-code:one")).toBeDefined();
  });

  it("says what it takes to get log files that did not come", async () => {
    renderAt("/", <ResumeMenu session={item({ upload_level: "redacted" })} />);
    expect(await screen.findByText(/it came at the upload level redacted/)).toBeDefined();
    expect(screen.queryByText(/turnlog hub pull/)).toBeNull();
  });

  it.each([
    ["metrics", "only its numbers are seen"],
    ["redacted", "Secrets that were recognised were taken out"],
    ["full", "its secrets are seen, too"],
  ] as const)("of level %s says beside the choice of readers what they see", async (level, words) => {
    answerWith({
      ...HUB,
      "GET /hub/v1/sessions/": { json: { visibility: "private", people: [], links: [] } },
      "GET /hub/v1/members": { json: { items: [] } },
    });
    renderAt("/", <ShareButton session={item({ upload_level: level })} />);
    fireEvent.click(await screen.findByRole("button", { name: /Only me/ }));
    expect(screen.getByRole("dialog").textContent).toContain(words);
  });
});
