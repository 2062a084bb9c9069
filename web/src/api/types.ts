/** What the server sends, by the names that its schemas give it, and pieces of that which have none there. */

import type {
  Message,
  Relationship,
  SearchHit,
  SessionItem,
  SessionState,
  ToolResult,
  UsageReport,
  WindowPage,
} from "./schema";

export type * from "./schema";

export type Role = Message["role"];
export type Part = NonNullable<Message["parts"]>[number];
export type ResultStatus = NonNullable<ToolResult["status"]>;
export type HistoryEvent = WindowPage["events"][number];
export type Session = SessionItem;
export type RelationshipKind = Relationship["kind"];
export type StateName = SessionState["state"];
export type SearchField = SearchHit["field"];
export type UsageBy = UsageReport["by"];

/** A list that is never so long that it needs pages. */
export interface Items<Item> {
  items: Item[];
}
