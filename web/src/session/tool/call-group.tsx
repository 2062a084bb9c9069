/** The calls of one step: one alone is a row, several stand side by side. */

import type { Message, MessageRow, Part, ToolCallPart } from "@/api/types";
import { plural } from "@/format/numbers";
import { ToolCall } from "./tool-call";
import "./tool-call.css";

interface CallGroupProps {
  calls: PlacedCall[];
  message: Message;
  placement: MessageRow;
}

export function CallGroup({ calls, message, placement }: CallGroupProps) {
  const shown = calls.map((call) => (
    <CallWithNested key={call.part.tool_call_id} call={call} message={message} placement={placement} />
  ));
  if (calls.length === 1) return shown;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for what one fills in
    <div className="parallel" role="group" aria-label={`${plural(calls.length, "call")} at the same time`}>
      {shown}
    </div>
  );
}

function CallWithNested({ call, message, placement }: Omit<CallGroupProps, "calls"> & { call: PlacedCall }) {
  const row = <ToolCall part={call.part} message={message} placement={placement} index={call.index} />;
  if (call.nested.length === 0) return row;
  return (
    <div className="nested">
      {row}
      <div className="nested-calls">
        {call.nested.map((inner) => (
          <CallWithNested
            key={inner.part.tool_call_id}
            call={inner}
            message={message}
            placement={placement}
          />
        ))}
      </div>
    </div>
  );
}

export interface PlacedPart<P extends Part = Part> {
  part: P;
  /** Index in the message: what links and searches name. */
  index: number;
}

export interface PlacedCall extends PlacedPart<ToolCallPart> {
  /** Calls that this one made. */
  nested: PlacedCall[];
}

export type StepItem = { kind: "part"; item: PlacedPart } | { kind: "calls"; calls: PlacedCall[] };

/**
 * Groups the parts of a step: calls next to each other ran at the same time and stand side by side in the order in which
 * the model made them; a call that another call made is nested in that one.
 */
export function layOut(parts: Part[]): StepItem[] {
  const items: StepItem[] = [];
  parts.forEach((part, index) => {
    if (part.type !== "tool-call") {
      items.push({ kind: "part", item: { part, index } });
      return;
    }
    const last = items.at(-1);
    if (last?.kind === "calls") last.calls.push({ part, index, nested: [] });
    else items.push({ kind: "calls", calls: [{ part, index, nested: [] }] });
  });
  return items.map((item) => (item.kind === "calls" ? { ...item, calls: nest(item.calls) } : item));
}

function nest(calls: PlacedCall[]): PlacedCall[] {
  const byId = new Map(calls.map((call) => [call.part.tool_call_id, call]));
  return calls.filter((call) => {
    const parent = byId.get(call.part.parent_tool_call_id ?? "");
    if (!parent || parent === call) return true;
    parent.nested.push(call);
    return false;
  });
}
