// @vitest-environment happy-dom

import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { Message } from "@/api/types";
import type { MessageEntry } from "@/session/entries";
import { MessageView } from "@/session/message/message-view";
import { AllButton } from "@/session/page/session-header";
import { answerWith, renderInSession } from "./render";
import { message, placement, toolCall } from "./samples";

function entry(content: Message, position: number): MessageEntry {
  return { kind: "message", key: content.id, position, message: content, placement: placement({ position }) };
}

const STEP = message({
  id: "step",
  role: "assistant",
  parts: [
    { type: "reasoning", text: "First the vault, then the doors." },
    toolCall({
      kind: "edit",
      tool_name: "Edit",
      input: { file_path: "vault.py", old_string: "open = True", new_string: "open = False" },
    }),
  ],
});

const INJECTED = message({
  id: "injected",
  origin: "harness",
  parts: [{ type: "text", text: "Be careful with money." }],
});

/** R-S38, R-H18. */
it("opens everything, folds everything, and leaves each as it is by itself", async () => {
  answerWith({});
  const { container } = renderInSession(
    <>
      <AllButton />
      <MessageView entry={entry(INJECTED, 0)} />
      <MessageView entry={entry(STEP, 1)} />
    </>,
  );
  const textOf = (selector: string) => container.querySelector(selector)?.textContent ?? null;
  expect(textOf(".reasoning-text")).toBeNull();
  expect(textOf(".injected-text")).toBeNull();
  expect(textOf(".diff-added")).toContain("open = False");

  await userEvent.click(screen.getByRole("button", { name: "Open all" }));
  expect(textOf(".diff-removed")).toContain("open = True");
  expect(textOf(".reasoning-text")).toContain("First the vault, then the doors.");
  expect(textOf(".injected-text")).toContain("Be careful with money.");

  await userEvent.click(screen.getByRole("button", { name: "Fold all" }));
  expect(textOf(".diff-added")).toBeNull();
  expect(textOf(".reasoning-text")).toBeNull();

  await userEvent.click(screen.getByRole("button", { name: "At a glance" }));
  expect(textOf(".diff-added")).toContain("open = False");
  expect(textOf(".reasoning-text")).toBeNull();
});

it("shows thinking folded to its first words and its length", async () => {
  const { container } = renderInSession(<MessageView entry={entry(STEP, 0)} />);
  const fold = screen.getByRole("button", { name: /^Thinking/ });
  expect(fold.textContent).toContain("First the vault");
  expect(fold.textContent).toContain("6 words");
  await userEvent.click(fold);
  expect(container.querySelector(".reasoning-text")?.textContent).toContain("then the doors.");
});
