/** Made of the server's schemas by `python -m turnlog.hub.typescript`; not to be edited. */

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

export type JsonObject = { [name: string]: Json };

/** Whether new sessions of the caller may be shown as the rule says. */
export interface AgreementBody {
  agrees: boolean;
}

/** Whether the machine may push. */
export interface AnswerBody {
  allow: boolean;
}

/** Something that somebody did; reads of one minute are one entry. */
export interface AuditEntry {
  actor: string;
  action: string;
  subject: string;
  owner: string;
  detail: string | null;
  times: number;
  last_at: string;
}

/** Entries of the audit log, and the names of what is in them. */
export interface AuditPage {
  items: AuditEntry[];
  names: Record<string, string>;
}

/** A budget; one of the same scope and subject gets this limit. */
export interface BudgetBody {
  scope: "team" | "project" | "person";
  subject?: string | null;
  limit: number;
}

/** Budgets that concern the caller. */
export interface Budgets {
  items: TeamBudget[];
  note?: string | null;
}

/** The code of a link. */
export interface CodeBody {
  code: string;
}

/** The machine that wants to join. */
export interface DeviceBody {
  machine: string;
  platform?: string;
}

/** The answer to a machine that wants to join. */
export interface DeviceCode {
  device_code: string;
  user_code: string;
  verification_uri: string;
  interval: number;
  expires_in: number;
}

/** The answer to the machine. */
export interface DeviceTokenBody {
  device_code: string;
}

/** A machine that wants to join. */
export interface Enrolment {
  machine: string;
  platform: string;
}

/** The code of an invitation, and how its guest wants to be called. */
export interface InvitationBody {
  code: string;
  name: string;
}

/** The answer to a machine that has joined. */
export interface Joined {
  access_token: string;
  team: string;
  user: string;
  machine: string;
  user_name: string;
  machine_name: string;
}

/** For how long a link works. */
export interface LinkBody {
  days?: number | null;
}

/** A machine that pushes sessions. */
export interface Machine {
  id: string;
  user: string;
  name: string;
  platform: string;
  created_at: string;
  seen_at: string | null;
}

/** Machines. */
export interface MachineList {
  items: Machine[];
}

/** Who makes the request. */
export interface Me {
  user: User | null;
  team: Team;
  role: "admin" | "member" | "owner" | "viewer";
  scopes: ("admin" | "push" | "read")[];
  machine: string | null;
  teams: TeamRole[];
  session?: string | null;
  machine_name?: string | null;
}

/** A person in a team. */
export interface Member {
  user: User;
  role: "admin" | "member" | "owner" | "viewer";
  joined_at: string;
}

/** Who is in the team. */
export interface Members {
  items: Member[];
}

/** What the guest becomes, and for whom it is meant. */
export interface NewInvitation {
  role?: "owner" | "admin" | "member" | "viewer";
  note?: string;
}

/** A link with a secret, shown this once. */
export interface NewLink {
  address: string;
  id: string;
  expires_at: string | null;
}

/** Another team. */
export interface NewTeam {
  name: string;
}

/** A token, shown this once. */
export interface NewToken {
  token: string;
  item: TokenItem;
}

/** What a token is for, what it allows, and for how long. */
export interface NewTokenBody {
  name: string;
  scopes?: ("push" | "read" | "admin")[];
  days?: number | null;
}

/** The session that a link shows. */
export interface OpenedLink {
  session: string;
}

/** A person of whom somebody sees sessions. */
export interface Pusher {
  id: string;
  name: string;
  machines: string[];
  sessions: number;
}

/** People of whom the caller sees sessions. */
export interface Pushers {
  items: Pusher[];
}

/** What a rule about age forgets. */
export interface Retention {
  sessions: number;
  people: number;
  oldest: string | null;
}

/** What a member becomes. */
export interface RoleBody {
  role: "owner" | "admin" | "member" | "viewer";
}

/** The rules of a team. */
export interface Rules {
  highest_level: "full" | "metrics" | "redacted";
  visibility: "private" | "team";
  retention_days: number | null;
}

/** What changes of the rules; what is left out stays. */
export interface RulesBody {
  highest_level?: "metrics" | "redacted" | "full" | null;
  visibility?: "private" | "team" | null;
  retention_days?: number | null;
}

/** Whose a session is, and who may read it besides. */
export interface SessionSharing {
  owner: string;
  machine: string | null;
  level: "full" | "metrics" | "none" | "redacted";
  visibility: "link" | "people" | "private" | "team";
  people: string[];
  links: ShareLink[];
}

/** A link with which anybody reads a session. */
export interface ShareLink {
  id: string;
  created_at: string;
  expires_at: string | null;
}

/** A session of the caller that others may read, too, or may when it comes again. Its subagents go with it. */
export interface SharedSession {
  id: string;
  visibility: "link" | "people" | "team";
  people: string[];
}

/** The sessions of the caller that others may read. */
export interface SharedSessions {
  items: SharedSession[];
  new_sessions: "private" | "team";
}

/** Who may read the session from now on. Links are made one by one. */
export interface SharingBody {
  visibility: "private" | "people" | "team";
  people?: string[];
}

/** How somebody can sign in. */
export interface SignInChoices {
  openid: string | null;
}

/** What some people used. */
export interface Sums {
  people?: number;
  sessions?: number | null;
  calls?: number;
  unknown_calls?: number;
  unpriced_calls?: number;
  tokens?: number;
  output?: number;
  cost?: number | null;
}

/** A team. */
export interface Team {
  id: string;
  name: string;
  smallest_group: number;
}

/** A team that the caller is in. */
export interface TeamBody {
  team: string;
}

/** A budget, and what of it the caller may know of the running month. */
export interface TeamBudget {
  id: string;
  scope: "person" | "project" | "team";
  subject: string | null;
  limit: number;
  month: string;
  spent?: number | null;
  unpriced_calls?: number | null;
  state?: "exceeded" | "nearly spent" | "within" | null;
}

/** What changes of the team; what is left out stays. */
export interface TeamChange {
  name?: string | null;
  smallest_group?: number | null;
}

/** A team that the caller is in, and as what. */
export interface TeamRole {
  team: Team;
  role: "admin" | "member" | "owner" | "viewer";
}

/** The usage of one person, project, model or day. */
export interface TeamRow {
  name: string | null;
  sums: Sums;
}

/** The rules of the team. */
export interface TeamRules {
  rules: Rules;
  agreed: boolean;
}

/** What a team used. */
export interface TeamUsage {
  by: "day" | "model" | "person" | "project";
  smallest_group: number;
  rows: TeamRow[];
  folded: Sums | null;
  totals: Sums | null;
  counted_at: string;
}

/** A token, an invitation or a browser, without its secret. */
export interface TokenItem {
  id: string;
  kind: "attempt" | "browser" | "device" | "invitation" | "link" | "machine" | "personal";
  user: string | null;
  name: string;
  scopes: string[];
  role: "admin" | "member" | "owner" | "viewer" | null;
  machine: string | null;
  created_at: string;
  expires_at: string | null;
  used_at: string | null;
}

/** Tokens, invitations or browsers. */
export interface Tokens {
  items: TokenItem[];
}

/** A session in the trash. */
export interface TrashedSession {
  id: string;
  title: string | null;
  trashed_at: string;
  forgotten_at: string;
}

/** What somebody has in the trash. */
export interface TrashedSessions {
  items: TrashedSession[];
}

/** A person. */
export interface User {
  id: string;
  name: string;
  email: string | null;
}
