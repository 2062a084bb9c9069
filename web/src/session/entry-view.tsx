/** One entry of the timeline: what is said above it once, and itself. */

import { memo } from "react";
import { Icon } from "@/design/icon";
import { formatDay } from "@/format/time";
import { BackgroundView } from "./background-view";
import { BranchView } from "./branch-view";
import type { Entry, MessageEntry } from "./entry";
import { EntryBoundary } from "./entry-boundary";
import { EventView, RecordsView } from "./event-view";
import { FATES } from "./fates";
import { JumpLink } from "./jump-link";
import { MessageView } from "./message-view";

export const EntryView = memo(function EntryView({ entry, index }: { entry: Entry; index: number }) {
  return (
    <div className="entry" data-index={index} data-branch={entry.inBranch} tabIndex={-1}>
      {entry.newDay && (
        <p className="timeline-day">
          <span>{formatDay(entry.newDay, new Date())}</span>
        </p>
      )}
      {entry.kind === "message" && !entry.inBranch && <NewFate entry={entry} />}
      <EntryBoundary entry={entry}>
        <EntryContent entry={entry} />
      </EntryBoundary>
    </div>
  );
});

export function EntryContent({ entry }: { entry: Entry }) {
  switch (entry.kind) {
    case "message":
      return <MessageView entry={entry} />;
    case "event":
      return <EventView entry={entry} />;
    case "records":
      return <RecordsView entry={entry} />;
    case "background":
      return <BackgroundView entry={entry} />;
    case "branch":
      return <BranchView entry={entry} />;
  }
}

function NewFate({ entry }: { entry: MessageEntry }) {
  if (!entry.newFate || entry.newFate === "active") return null;
  const { icon, text } = FATES[entry.newFate];
  const cause = entry.placement.fate_cause;
  return (
    <p className="timeline-fate">
      <Icon name={icon} size={14} /> {text}
      {cause && entry.newFate === "compacted" && (
        <JumpLink to={{ compaction: cause, after: entry.position }}>Go there</JumpLink>
      )}
    </p>
  );
}
