/** A message, by who wrote it: what a person asked, what the model did, what the agent's harness put in. */

import type { Message, Origin } from "@/api/types";
import { AssistantMessage } from "./assistant-message";
import type { MessageEntry } from "./entry";
import { InjectedMessage } from "./injected-message";
import { PromptMessage } from "./prompt-message";

const INJECTED: ReadonlySet<Origin | undefined> = new Set<Origin>([
  "harness",
  "notification",
  "command_output",
  "shell_output",
  "compaction",
]);

export function MessageView({ entry }: { entry: MessageEntry }) {
  const { message } = entry;
  if (message.role === "assistant") return <AssistantMessage entry={entry} />;
  return isInjected(message) ? <InjectedMessage entry={entry} /> : <PromptMessage entry={entry} />;
}

function isInjected(message: Message): boolean {
  return message.role !== "user" || INJECTED.has(message.origin);
}
