/** The records that a message or event was read from, byte for byte as the agent wrote them. */

import { useQuery } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { messagePath, sessionPath } from "@/api/paths";
import type { EventRecord, Items, RecordText } from "@/api/types";
import { CodeBlock } from "@/content/code-block";
import { formatCount } from "@/format/numbers";
import { useSessionContext } from "@/session/session-context";

/** The disclosure id of the raw records of a message or event, or of one part of a message. */
export function rawId(messageId: string, part?: number): string {
  return part === undefined ? `raw/${messageId}` : `raw/${messageId}/${part}`;
}

interface RawRecordsProps {
  messageId: string;
  /** Id of a tool call: only the records that name it. */
  callId?: string;
}

export function RawRecords({ messageId, callId }: RawRecordsProps) {
  const { sessionId } = useSessionContext();
  const records = useQuery({
    queryKey: ["raw", messageId, sessionId],
    queryFn: ({ signal }) =>
      getJson<Items<RecordText>>(`${messagePath(messageId)}/raw`, { session: sessionId }, signal),
  });
  if (records.isPending) return <p className="tool-note">Loading…</p>;
  if (records.isError) return <p className="tool-note">Could not be loaded: {records.error.message}</p>;
  const about = callId ? records.data.items.filter(({ text }) => text.includes(callId)) : [];
  // A call may have another id in its records: then all of them are shown.
  return (about.length > 0 ? about : records.data.items).map((record) => (
    <RawRecordView key={`${record.source}/${record.offset}`} record={record} />
  ));
}

export function RawRecordView({ record }: { record: RecordText }) {
  return (
    <figure className="raw-record">
      <figcaption>
        {record.source}
        {record.offset !== null && `, byte ${formatCount(record.offset)}`}
        {!record.exact && ", not valid UTF-8: shown with replacements"}
      </figcaption>
      <CodeBlock code={pretty(record.text)} language="json" />
    </figure>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The records of an event, loaded from the archive when they are opened. */
export function EventRecords({ position, id }: { position: number; id: string }) {
  const { sessionId } = useSessionContext();
  const records = useQuery({
    queryKey: ["event", sessionId, position],
    queryFn: ({ signal }) =>
      getJson<Items<EventRecord>>(`${sessionPath(sessionId)}/events/${position}`, {}, signal),
  });
  if (records.isPending) return <p className="tool-note">Loading…</p>;
  if (records.isError) return <p className="tool-note">Could not be loaded: {records.error.message}</p>;
  return records.data.items
    .filter(({ event }) => "id" in event && event.id === id)
    .flatMap(({ records }) => records)
    .map((record) => <RawRecordView key={`${record.source}/${record.offset}`} record={record} />);
}
