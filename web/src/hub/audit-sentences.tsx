/** What the entries of the audit log say, in sentences. */

import type { ReactNode } from "react";
import { Link } from "wouter";
import { sessionPage } from "@/api/paths";
import { formatRoundCost, plural } from "@/format/numbers";
import type { AuditEntry } from "./schema";

/** Id -> what people call it. */
export type Names = Record<string, string>;

interface Action {
  /** In the list of actions. */
  label: string;
  /** What follows whoever did it. */
  say: (entry: AuditEntry, names: Names) => ReactNode;
}

/** What is done to what is a person's own, the most frequent first. */
export const OWN_ACTIONS: Record<string, Action> = {
  read: { label: "Read a session", say: (entry, names) => <>read {session(entry, names)}</> },
  search: {
    label: "Saw a hit of a search",
    say: (entry, names) => <>saw words of {session(entry, names)} in a search</>,
  },
  share: {
    label: "Showed a session",
    say: (entry, names) => {
      const [visibility = "", ...people] = (entry.detail ?? "").split(" ");
      if (visibility === "private") return <>showed {session(entry, names)} to nobody else any more</>;
      const whom = people.map((id) => names[id] ?? id).join(", ");
      return (
        <>
          showed {session(entry, names)} to {whom || `the ${visibility}`}
        </>
      );
    },
  },
  "make link": {
    label: "Made a link",
    say: (entry, names) => <>made a link to {session(entry, names)}</>,
  },
  "take link back": {
    label: "Revoked a link",
    say: (entry, names) => <>revoked a link to {session(entry, names)}</>,
  },
  "connect machine": {
    label: "Connected a machine",
    say: (entry, names) => <>connected the machine {nameOf(entry, names)}</>,
  },
  "end machine": {
    label: "Revoked a machine",
    say: (entry, names) => <>revoked the machine {nameOf(entry, names)}</>,
  },
  "make token": {
    label: "Made a token",
    say: (entry, names) => (
      <>
        made the token {nameOf(entry, names)}, which may {(entry.detail ?? "").split(" ").join(" and ")}
      </>
    ),
  },
  "end token": {
    label: "Revoked a token",
    // That of a browser has no name.
    say: (entry, names) =>
      entry.subject in names ? <>revoked the token {names[entry.subject]}</> : "revoked a token or a browser",
  },
  "agree to rules": {
    label: "Agreed to the rules",
    say: () => "agreed that new sessions are shown as the rule says",
  },
  "disagree with rules": {
    label: "Disagreed with the rules",
    say: () => "no longer agreed that new sessions are shown as the rule says",
  },
  "forget session": {
    label: "Forgot a session",
    say: (entry, names) => (
      <>
        forgot {session(entry, names)}
        {onMachine(entry)}
      </>
    ),
  },
  "take session back": {
    label: "Took a session back",
    say: (entry, names) => (
      <>
        took back what was sent of {session(entry, names)}, whose upload level is another one now
        {onMachine(entry)}
      </>
    ),
  },
  "forget old session": {
    label: "Forgot an old session",
    say: (entry, names) => (
      <>
        forgot {session(entry, names)}, by the rule for sessions {entry.detail}
      </>
    ),
  },
  "put into trash": {
    label: "Moved a session to the trash",
    say: (entry, names) => <>moved {session(entry, names)} to the trash</>,
  },
  "take out of trash": {
    label: "Took a session out of the trash",
    say: (entry, names) => <>took {session(entry, names)} out of the trash</>,
  },
  "forget deleted session": {
    label: "Forgot a session of the trash",
    say: (entry, names) => <>forgot {session(entry, names)}, whose time in the trash was over</>,
  },
};

/** What is done to the team. */
export const TEAM_ACTIONS: Record<string, Action> = {
  invite: {
    label: "Invited somebody",
    say: (entry, names) => (
      <>
        invited {names[entry.subject] ?? "somebody"} as {roleOf(entry)}
      </>
    ),
  },
  "take invitation back": {
    label: "Revoked an invitation",
    say: (entry, names) =>
      entry.subject in names ? (
        <>revoked the invitation of {names[entry.subject]}</>
      ) : (
        "revoked an invitation"
      ),
  },
  join: { label: "Joined", say: (entry) => <>joined the team as {roleOf(entry)}</> },
  "change role": {
    label: "Changed a role",
    say: (entry, names) => (
      <>
        made {nameOf(entry, names)} {roleOf(entry)}
      </>
    ),
  },
  "remove member": {
    label: "Removed somebody",
    say: (entry, names) => <>removed {nameOf(entry, names)} from the team</>,
  },
  "change team": {
    label: "Changed the team",
    say: (entry) => `changed the team${fieldsIn(entry, TEAM_FIELDS)}`,
  },
  "begin team": { label: "Began a team", say: (entry) => <>began the team {entry.detail}</> },
  "change rules": {
    label: "Changed the rules",
    say: (entry) => `changed the rules${fieldsIn(entry, RULES)}`,
  },
  "set a budget": {
    label: "Set a budget",
    say: (entry, names) => {
      const { scope, subject, limit } = fieldsOf(entry);
      const whose = scope === "team" ? "the team" : (names[String(subject)] ?? String(subject));
      return `set a budget for ${whose}: ${formatRoundCost(Number(limit))} a month`;
    },
  },
  "drop a budget": { label: "Dropped a budget", say: () => "dropped a budget" },
  "forget old sessions": {
    label: "Forgot old sessions",
    say: (entry) => <>forgot sessions by the rule for old ones: {entry.detail}</>,
  },
  "forget deleted sessions": {
    label: "Forgot sessions of the trash",
    say: (entry) => <>forgot sessions whose time in the trash was over: {entry.detail}</>,
  },
  "team usage": {
    label: "Looked at the usage",
    say: (entry) => <>looked at what the team used, by {entry.subject}</>,
  },
};

const TEAM_FIELDS: Record<string, (value: unknown) => string> = {
  name: (value) => `its name is ${value}`,
  smallest_group: (value) => `figures show groups from ${plural(Number(value), "person", "people")} on`,
};

const RULES: Record<string, (value: unknown) => string> = {
  highest_level: (value) => `${value} is the highest upload level`,
  visibility: (value) => `new sessions are shown to ${value === "team" ? "the team" : "their owner only"}`,
  retention_days: (value) =>
    value === null ? "no session is forgotten by its age" : `sessions are forgotten after ${value} days`,
};

/** What an entry says, without its time. */
export function sentenceOf(entry: AuditEntry, names: Names): ReactNode {
  const action = OWN_ACTIONS[entry.action] ?? TEAM_ACTIONS[entry.action];
  // An entry of a newer hub, or of a table that somebody wrote to.
  const said = action?.say(entry, names) ?? `${entry.action} ${nameOf(entry, names)}`;
  return (
    <>
      <b>{actorOf(entry, names)}</b> {said}
      {entry.times > 1 && `, ${plural(entry.times, "time")}`}
    </>
  );
}

export function actorOf({ actor }: AuditEntry, names: Names): string {
  if (actor.startsWith("link:")) return "Somebody with a link";
  return names[actor] ?? (actor === "hub" ? "The hub" : actor);
}

/** A session that is not there any more, or not shown, has no title here and no page. */
function session({ subject }: AuditEntry, names: Names): ReactNode {
  const title = names[subject];
  if (title === undefined) return <span className="audit-id">{subject}</span>;
  return (
    <Link href={sessionPage(subject)} className="link" title={subject}>
      {title}
    </Link>
  );
}

function nameOf({ subject }: AuditEntry, names: Names): string {
  return names[subject] ?? subject;
}

function roleOf({ detail }: AuditEntry): string {
  const role = detail ?? "member";
  return `${"ao".includes(role.charAt(0)) ? "an" : "a"} ${role}`;
}

/** `on laptop`, where a machine did it. */
function onMachine({ detail }: AuditEntry): string {
  return detail ? `, ${detail}` : "";
}

/** What fields are now, after a colon; nothing of those that are not known. */
function fieldsIn(entry: AuditEntry, known: Record<string, (value: unknown) => string>): string {
  const said = Object.entries(fieldsOf(entry)).flatMap(([field, value]) => known[field]?.(value) ?? []);
  return said.length > 0 ? `: ${said.join(", ")}` : "";
}

/** The fields of a detail that is JSON; none of one that is not. */
function fieldsOf({ detail }: AuditEntry): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(detail ?? "");
    return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
