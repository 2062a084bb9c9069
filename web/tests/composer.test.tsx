// @vitest-environment happy-dom

import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { PromptResponse } from "@/api/types";
import { Composer } from "@/session/page/composer";
import { answerWith, renderInSession } from "./render";

const IDLE: PromptResponse = {
  can_go_on: true,
  can_ask: true,
  running: false,
  problem: null,
  permission_requests: [],
};

const PROMPT = "/api/sessions/s1/prompt";

it("shows nothing where the agent cannot resume the session", async () => {
  const requests = answerWith({ [`GET ${PROMPT}`]: { json: { ...IDLE, can_go_on: false } } });
  renderInSession(<Composer sessionId="s1" />);
  await waitFor(() => expect(requests.lines).toHaveLength(1));
  expect(screen.queryByRole("textbox")).toBeNull();
});

it("sends a prompt with Enter, and none without words", async () => {
  const requests = answerWith({
    [`GET ${PROMPT}`]: { json: IDLE },
    [`POST ${PROMPT}`]: { json: { ...IDLE, running: true } },
  });
  renderInSession(<Composer sessionId="s1" />);
  const field = await screen.findByRole("textbox", { name: "Next prompt" });
  expect(screen.getByRole("button", { name: "Send" }).hasAttribute("disabled")).toBe(true);
  await userEvent.type(field, "x{Shift>}{Enter}{/Shift}y");
  expect(requests.bodies).toEqual([]);
  await userEvent.type(field, "{Enter}");
  expect(await screen.findByRole("button", { name: "Stop" })).toBeTruthy();
  expect(requests.bodies).toEqual([{ text: "x\ny" }]);
});

it("shows why the agent failed, and keeps the prompt that could not be sent", async () => {
  answerWith({
    [`GET ${PROMPT}`]: { json: { ...IDLE, problem: "Credit balance is too low" } },
    [`POST ${PROMPT}`]: { status: 503, message: "the agent could not be started" },
  });
  renderInSession(<Composer sessionId="s1" />);
  expect((await screen.findByRole("alert")).textContent).toBe("Credit balance is too low");
  const field = screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Next prompt" });
  await userEvent.type(field, "again{Enter}");
  await screen.findByText("the agent could not be started");
  expect(field.value).toBe("again");
});

it("answers a permission request with what to do instead", async () => {
  const request = {
    id: "q1",
    tool_call_id: "c1",
    tool_name: "Bash",
    input: { command: "rm -rf paint" },
    reason: "outside of the folder",
  };
  const requests = answerWith({
    [`GET ${PROMPT}`]: { json: { ...IDLE, running: true, permission_requests: [request] } },
    [`POST ${PROMPT}/`]: { json: IDLE },
  });
  renderInSession(<Composer sessionId="s1" />);
  const region = await screen.findByRole("region", { name: "Waiting for your permission" });
  expect(region.textContent).toContain("May it use Bash?");
  expect(region.textContent).toContain("outside of the folder");
  expect(region.textContent).toContain("rm -rf paint");
  await userEvent.type(screen.getByRole("textbox", { name: "Reason for denying" }), "Keep the paint");
  await userEvent.click(screen.getByRole("button", { name: "Deny" }));
  await waitFor(() => expect(screen.queryByRole("region")).toBeNull());
  expect(requests.bodies).toEqual([{ id: "q1", allow: false, reason: "Keep the paint" }]);
});

it("says that an agent cannot ask here", async () => {
  answerWith({ [`GET ${PROMPT}`]: { json: { ...IDLE, can_ask: false } } });
  renderInSession(<Composer sessionId="s1" />);
  expect(await screen.findByText(/It may only do what its settings allow/)).toBeTruthy();
});
