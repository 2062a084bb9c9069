/** The records a message was made from, byte for byte as the agent wrote them. */

import { useQuery } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { messagePath } from "@/api/paths";
import type { Items, RawRecord } from "@/api/types";
import { CodeBlock } from "@/content/code-block";
import { formatCount } from "@/format/numbers";
import { useSessionContext } from "./session-context";

export function RawRecords({ messageId }: { messageId: string }) {
  const { sessionId } = useSessionContext();
  const records = useQuery({
    queryKey: ["raw", messageId, sessionId],
    queryFn: ({ signal }) =>
      getJson<Items<RawRecord>>(`${messagePath(messageId)}/raw`, { session: sessionId }, signal),
  });
  if (records.isPending) return <p className="tool-note">Loading…</p>;
  if (records.isError) return <p className="tool-note">Could not be loaded: {records.error.message}</p>;
  return records.data.items.map((record) => (
    <RawRecordView key={`${record.source}/${record.offset}`} record={record} />
  ));
}

export function RawRecordView({ record }: { record: RawRecord }) {
  return (
    <figure className="raw-record">
      <figcaption>
        {record.source}, byte {formatCount(record.offset)}
        {!record.exact && ", not valid UTF-8: shown repaired"}
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
