/** One entry of the timeline, with the day or fate that begins at it. */

import { Component, memo, type ReactNode } from "react";
import { Icon } from "@/design/icon";
import { plural } from "@/format/numbers";
import { formatDay } from "@/format/time";
import { useDisclosure, useOwnDisclosure } from "@/session/disclosure";
import type { BackgroundEntry, BranchEntry, Entry, MessageEntry } from "@/session/entries";
import { BRANCHES, FATES } from "@/session/fates";
import { commandText, previewOf, sizeOf, textOf } from "@/session/message/message-text";
import { InjectedMessage, MessageView } from "@/session/message/message-view";
import { JumpLink, useSessionContext } from "@/session/session-context";
import { EventView, RecordsView } from "./event-view";
import "./timeline.css";
import type { Json } from "@/api/types";
import { JsonCode } from "@/content/json-view";

export const EntryView = memo(function EntryView({ entry, index }: { entry: Entry; index: number }) {
  return (
    <div
      className="entry"
      data-index={index}
      data-entry={entry.key}
      data-branch={entry.inBranch}
      tabIndex={-1}
    >
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
        <>
          {" · "}
          <JumpLink to={{ compaction: cause, after: entry.position }}>Jump</JumpLink>
        </>
      )}
    </p>
  );
}

/**
 * The head of a branch that the conversation left: what it was, how long it is, and where the conversation went on.
 */
export function BranchView({ entry }: { entry: BranchEntry }) {
  const [open, toggle] = useDisclosure(entry.id);
  const { icon, text } = BRANCHES[entry.fate];
  return (
    <div className="branch">
      <button type="button" className="fold branch-fold" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name={icon} size={14} />
        <span>{text}</span>
        {entry.prompt && (
          <span className="fold-preview">{previewOf(commandText(textOf(entry.prompt.message)))}</span>
        )}
        <span className="fold-size">{plural(entry.messages, "message")}</span>
      </button>
      {entry.cause && <JumpLink to={{ id: entry.cause }}>Go to where it continued</JumpLink>}
    </div>
  );
}

/** Injected context and quiet records, folded to one line together. */
export function BackgroundView({ entry }: { entry: BackgroundEntry }) {
  const [opened, toggle] = useOwnDisclosure(entry.key);
  const { linked } = useSessionContext();
  const messages = entry.items.filter((item) => item.kind === "message");
  const size = messages.reduce((sum, { message }) => sum + sizeOf(message), 0);
  const open = opened || messages.some(({ message }) => message.id === linked?.messageId);
  return (
    <div className="background">
      <button type="button" className="fold fold-faint" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name="system" size={14} />
        <span>{titleOf(entry, messages)}</span>
        {!open && <span className="fold-preview">{messages.map(firstWords).join(" · ")}</span>}
        <span className="fold-size">{plural(size, "character")}</span>
      </button>
      {open && (
        <div className="background-items">
          {entry.items.map((item) =>
            item.kind === "message" ? (
              <InjectedMessage key={item.key} entry={item} />
            ) : (
              <RecordsView key={item.key} entry={item} />
            ),
          )}
        </div>
      )}
    </div>
  );
}

/** "System prompt, 3 pieces of injected context, 2 records". */
function titleOf(entry: BackgroundEntry, messages: MessageEntry[]): string {
  const system = messages.filter(({ message }) => message.role === "system").length;
  const injected = messages.length - system;
  const records = entry.items.reduce(
    (sum, item) => sum + (item.kind === "records" ? item.events.length : 0),
    0,
  );
  return [
    system > 0 && "System prompt",
    injected === 1 && "Injected context",
    injected > 1 && `${injected} pieces of injected context`,
    records > 0 && plural(records, "record"),
  ]
    .filter(Boolean)
    .join(", ");
}

function firstWords({ message }: MessageEntry): string {
  return previewOf(textOf(message)).slice(0, 60);
}

interface EntryBoundaryProps {
  entry: Entry;
  children: ReactNode;
}

interface EntryBoundaryState {
  entry: Entry;
  failed: boolean;
}

/** An entry that cannot be drawn is shown as its JSON and never affects its neighbours. */
export class EntryBoundary extends Component<EntryBoundaryProps, EntryBoundaryState> {
  override state: EntryBoundaryState = { entry: this.props.entry, failed: false };

  static getDerivedStateFromError(): Partial<EntryBoundaryState> {
    return { failed: true };
  }

  /** An entry that changed is tried again. */
  static getDerivedStateFromProps(
    { entry }: EntryBoundaryProps,
    state: EntryBoundaryState,
  ): Partial<EntryBoundaryState> | null {
    return entry === state.entry ? null : { entry, failed: false };
  }

  override render(): ReactNode {
    if (!this.state.failed) return this.props.children;
    return (
      <figure className="box">
        <figcaption>This could not be shown</figcaption>
        <JsonCode value={this.props.entry as unknown as Json} />
      </figure>
    );
  }
}
