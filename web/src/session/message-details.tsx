/** Everything known about a message: times, model, usage, cost, fate, its link, and its records as they were written. */

import { formatCost, UNKNOWN } from "@/format/numbers";
import { formatDuration, formatExact, spanOf } from "@/format/time";
import { CopyMessage } from "./copy-as";
import { useOwnDisclosure } from "./disclosure";
import type { MessageEntry } from "./entry";
import { FATES } from "./fates";
import { RawRecords } from "./raw-records";
import { describeUsage } from "./step-usage";
import "./message-details.css";

/** Under what it is remembered whether the details of a message, and its raw records, are open. */
export function detailsId(messageId: string): string {
  return `details/${messageId}`;
}

export function rawId(messageId: string, part?: number): string {
  return part === undefined ? `raw/${messageId}` : `raw/${messageId}/${part}`;
}

export function MessageDetails({ entry }: { entry: MessageEntry }) {
  const [raw, toggleRaw] = useOwnDisclosure(rawId(entry.message.id));
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
      <div className="details-actions">
        <button type="button" className="link" aria-expanded={raw} onClick={toggleRaw} title="Key: r">
          {raw ? "Hide raw records" : "Raw records"}
        </button>
        <CopyMessage message={entry.message} />
      </div>
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
