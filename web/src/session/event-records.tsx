/** What the log says of an event. It stays in the archive until somebody looks. */

import { useQuery } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { sessionPath } from "@/api/paths";
import type { EventRecord, Items } from "@/api/types";
import { RawRecordView } from "./raw-records";
import { useSessionContext } from "./session-context";

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
