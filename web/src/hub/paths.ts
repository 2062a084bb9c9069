/** Addresses of what only a hub answers. */

export const ME = "/hub/v1/me";
export const PEOPLE = "/hub/v1/people";
export const MEMBERS = "/hub/v1/members";
export const INVITATIONS = "/hub/v1/invitations";
export const MACHINES = "/hub/v1/machines";
export const TOKENS = "/hub/v1/tokens";
export const SIGN_IN_LINKS = "/hub/v1/sign-in/links";
export const SIGN_OUT = "/hub/v1/sign-out";
export const TEAM = "/hub/v1/team";
export const RULES = "/hub/v1/rules";
export const RETENTION = "/hub/v1/rules/retention";
export const AGREEMENT = "/hub/v1/rules/agreement";
export const TEAM_USAGE = "/hub/v1/usage";
export const BUDGETS = "/hub/v1/budgets";
export const AUDIT = "/hub/v1/audit";
export const TEAM_AUDIT = "/hub/v1/audit/team";
export const TRASH = "/hub/v1/trash";

export function sharingPath(sessionId: string): string {
  return `/hub/v1/sessions/${encodeURIComponent(sessionId)}/sharing`;
}

export function linksPath(sessionId: string): string {
  return `/hub/v1/sessions/${encodeURIComponent(sessionId)}/links`;
}

export function trashPath(sessionId: string): string {
  return `/hub/v1/sessions/${encodeURIComponent(sessionId)}/trash`;
}
