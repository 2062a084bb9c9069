/** The least that a message, a place, a call, a session are, for tests to say only what they are about. */

import type { Message, MessageRow, SessionItem, ToolCallPart } from "@/api/types";

export function message(fields: Partial<Message> = {}): Message {
  return { id: "m1", role: "user", ...fields };
}

export function placement(fields: Partial<MessageRow> = {}): MessageRow {
  return {
    position: 0,
    message_id: "m1",
    turn: 1,
    step: null,
    fate: "active",
    fate_cause: null,
    cost: null,
    children: {},
    results: [],
    ...fields,
  };
}

export function toolCall(fields: Partial<ToolCallPart> = {}): ToolCallPart {
  return { type: "tool-call", tool_call_id: "call1", tool_name: "Bash", kind: "execute", ...fields };
}

export function session(fields: Partial<SessionItem> = {}): SessionItem {
  // One model call: a session without any is folded away in lists.
  const counts = { messages: 1, steps: 1 };
  return { id: "claude-code:one", agent: "claude-code", external_id: "one", counts, ...fields };
}
