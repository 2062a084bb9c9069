/**
 * What the server sends. Fields at their default are left out of a message's JSON, so most are optional here.
 * A test compares every interface with the server's own schemas by name and field.
 */

export type * from "./types/model";
export type * from "./types/search";
export type * from "./types/server";
export type * from "./types/sessions";
export type * from "./types/timeline";
export type * from "./types/usage";
