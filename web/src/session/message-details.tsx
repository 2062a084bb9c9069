/** Everything known about a message: times, model, usage, cost, fate, its link, and its records as they were written. */

import { useState } from "react";
import { sessionPage } from "@/api/paths";
import { CopyButton } from "@/design/copy-button";
import { formatCost, UNKNOWN } from "@/format/numbers";
import { formatDuration, formatExact, spanOf } from "@/format/time";
import type { MessageEntry } from "./entries";
import { FATES } from "./fates";
import { RawRecords } from "./raw-records";
import { useSessionContext } from "./session-context";
import { describeUsage } from "./step-usage";
import "./message-details.css";

export function MessageDetails({ entry }: { entry: MessageEntry }) {
  const [raw, setRaw] = useState(false);
  const { sessionId } = useSessionContext();
  return (
    <aside className="details" aria-label="Message details">
      <dl>
        {factsOf(entry).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p className="details-actions">
        <CopyButton
          label="Copy link"
          text={() => location.origin + sessionPage(sessionId, entry.message.id)}
        />
        <button type="button" className="button" aria-expanded={raw} onClick={() => setRaw(!raw)}>
          {raw ? "Hide raw records" : "Raw records"}
        </button>
      </p>
      {raw && <RawRecords messageId={entry.message.id} />}
    </aside>
  );
}

function factsOf({ message, placement }: MessageEntry): [name: string, value: string][] {
  const duration = spanOf(message.created_at, message.completed_at);
  const isStep = message.role === "assistant";
  const facts: [string, string | null | undefined][] = [
    ["When", message.created_at ? formatExact(message.created_at) : UNKNOWN],
    ["Place", placeOf(placement.turn, placement.step)],
    ["Took", duration === null || duration === 0 ? null : formatDuration(duration)],
    ["Role", message.origin ? `${message.role}, ${message.origin.replaceAll("_", " ")}` : message.role],
    ["Model", isStep ? (message.model ?? UNKNOWN) : null],
    ["Asked for", message.requested_model],
    ["Stopped", message.raw_stop_reason ?? message.stop_reason],
    ["Tokens", isStep ? (message.usage ? describeUsage(message.usage) : UNKNOWN) : null],
    [
      "Cost",
      isStep ? (placement.cost === 0 ? "counted in another session" : formatCost(placement.cost)) : null,
    ],
    ["Fate", placement.fate === "active" ? null : FATES[placement.fate].text],
    ["Message", message.id],
    ["Request", message.request_id],
  ];
  return facts.flatMap(([name, value]) => (value ? [[name, value]] : []));
}

function placeOf(turn: number | null | undefined, step: number | null | undefined): string | null {
  if (turn == null) return null;
  return step == null ? `turn ${turn}` : `turn ${turn}, step ${step}`;
}
