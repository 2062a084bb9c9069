/** Who is in the team and as what; admins invite, change and remove. */

import { useState } from "react";
import { useItems } from "@/api/use-items";
import { describeFailure } from "@/design/problem";
import { formatExact, formatRelative } from "@/format/time";
import { EndButton, HubList } from "./hub-list";
import { labelsOf } from "./names";
import { INVITATIONS, MEMBERS } from "./paths";
import type { Me, Member, NewLink, TokenItem } from "./schema";
import type { SectionProps } from "./section";
import { Secret } from "./share-button";
import { useHubChange } from "./use-hub";

type Role = Member["role"];

const ROLES: Role[] = ["viewer", "member", "admin", "owner"];

/** What somebody may make of others: only owners make owners, and change them. */
function rolesOf(me: Me): Role[] {
  return me.role === "owner" ? ROLES : ROLES.filter((role) => role !== "owner");
}

export function PeopleSection({ me, isAdmin }: SectionProps) {
  const labels = labelsOf(useItems<Member>(MEMBERS).map(({ user }) => user));
  return (
    <>
      <HubList<Member>
        title="People"
        path={MEMBERS}
        empty="Nobody."
        of={({ user }) => user.id}
        row={(member) => (
          <MemberRow
            member={member}
            name={labels.get(member.user.id) ?? member.user.name}
            me={me}
            isAdmin={isAdmin}
          />
        )}
      />
      {isAdmin && <Invite roles={rolesOf(me)} />}
      {isAdmin && (
        <HubList<TokenItem>
          title="Open invitations"
          path={INVITATIONS}
          empty="None."
          of={({ id }) => id}
          row={({ id, role, name, expires_at }) => (
            <>
              <span className="team-name">{name || "Whoever has the link"}</span>
              <span className="team-fact">
                {role}
                {expires_at && `, until ${formatExact(expires_at)}`}
              </span>
              <EndButton label="Revoke" question="Its link works no more." path={`${INVITATIONS}/${id}`} />
            </>
          )}
        />
      )}
    </>
  );
}

interface MemberRowProps extends SectionProps {
  member: Member;
  /** What tells this person from others of the same name. */
  name: string;
}

function MemberRow({ member: { user, role, joined_at }, name, me, isAdmin }: MemberRowProps) {
  const change = useHubChange();
  const isSelf = user.id === me.user?.id;
  const path = `${MEMBERS}/${user.id}`;
  const mayChange = isAdmin && (me.role === "owner" || role !== "owner");
  return (
    <>
      <span className="team-name" title={user.email ?? undefined}>
        {name}
        {isSelf && " (you)"}
      </span>
      <span className="team-fact" title={formatExact(joined_at)}>
        joined {formatRelative(joined_at, new Date())}
      </span>
      {mayChange ? (
        <select
          className="field"
          aria-label={`Role of ${name}`}
          value={role}
          disabled={change.isPending}
          onChange={(event) => change.mutate({ method: "PATCH", path, body: { role: event.target.value } })}
        >
          {rolesOf(me).map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      ) : (
        <span className="team-fact">{role}</span>
      )}
      {isSelf && (
        <EndButton
          label="Leave"
          question="Leave the team? Your tokens, machines and browsers end at once. Your sessions stay."
          path={path}
        />
      )}
      {!isSelf && mayChange && (
        <EndButton
          label="Remove"
          question={`Remove ${name}? Tokens, machines and browsers end at once. The sessions stay. A new invitation alone does not give them back.`}
          path={path}
        />
      )}
      {change.error && (
        <span role="alert" className="team-problem">
          {describeFailure(change.error)}
        </span>
      )}
    </>
  );
}

function Invite({ roles }: { roles: Role[] }) {
  const [role, setRole] = useState<Role>("member");
  const [note, setNote] = useState("");
  const invite = useHubChange<NewLink>();
  return (
    <form
      className="team-form"
      aria-label="Invite"
      onSubmit={(event) => {
        event.preventDefault();
        invite.mutate({ method: "POST", path: INVITATIONS, body: { role, note: note.trim() } });
      }}
    >
      <label>
        For
        <input
          className="field"
          value={note}
          maxLength={200}
          placeholder="a name, for this list only"
          onChange={(event) => setNote(event.target.value)}
        />
      </label>
      <label>
        As
        <select className="field" value={role} onChange={(event) => setRole(event.target.value as Role)}>
          {roles.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <button type="submit" className="button primary" disabled={invite.isPending}>
        Invite
      </button>
      {invite.error && (
        <p role="alert" className="team-problem">
          {describeFailure(invite.error)}
        </p>
      )}
      {invite.data && (
        <Secret label="Send this link. It works once, for a week." text={invite.data.address} />
      )}
    </form>
  );
}
