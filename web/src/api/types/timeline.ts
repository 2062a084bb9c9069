/** A piece of a session, its replay, its outline, and its records as they were written. */

import type { Fate, HistoryEvent, Message } from "./model";

export interface Placement {
  position: number;
  message_id: string;
  turn: number | null;
  step: number | null;
  fate: Fate;
  fate_cause: string | null;
  /** US dollars; 0 where another session pays for the message, null where the price is unknown. */
  cost: number | null;
  /** Tool call id -> id of the session it started. */
  children: Record<string, string>;
  results: [result_id: string, position: number][];
}

export interface WindowPage {
  items: Message[];
  rows: Placement[];
  events: HistoryEvent[];
  has_before: boolean;
  has_after: boolean;
}

/** An event of a replay: of what it says, the page wants when it came. */
export interface ReplayedEvent {
  delay: number;
  event: { type: string; position?: number; created_at?: string };
}

export interface ReplayPage {
  items: ReplayedEvent[];
  before: number | null;
  after: number | null;
}

export interface Membership {
  session_id: string;
  message_id: string;
  position: number;
  parent_id?: string;
  turn?: number;
  step?: number;
  fate?: Fate;
  fate_cause?: string;
  pays?: boolean;
}

export interface MessageAnswer {
  message: Message;
  memberships: Membership[];
}

export interface RawRecord {
  source: string;
  offset: number;
  length: number;
  text: string;
  /** False: the bytes are not UTF-8, and `text` is a repaired reading of them. */
  exact: boolean;
}

export interface EventRecord {
  event: HistoryEvent;
  records: RawRecord[];
}

/** A list that is never so long that it needs pages. */
export interface Items<Item> {
  items: Item[];
}
