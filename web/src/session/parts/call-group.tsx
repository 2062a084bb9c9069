/** The calls of one step: one alone as a row, several side by side. */

import type { Message, Placement } from "@/api/types";
import { plural } from "@/format/numbers";
import type { PlacedCall } from "./call-groups";
import { ToolCall } from "./tool-call";
import "./call-group.css";

interface CallGroupProps {
  calls: PlacedCall[];
  message: Message;
  placement: Placement;
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
