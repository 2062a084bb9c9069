/** What pushes and reads for whom: machines, tokens of programs, browsers. */

import { useState } from "react";
import { useItems } from "@/api/use-items";
import { describeFailure } from "@/design/problem";
import { Segments } from "@/design/segments";
import { formatExact, formatRelative } from "@/format/time";
import { EndButton, HubList } from "./hub-list";
import { MACHINES, MEMBERS, SIGN_IN_LINKS, SIGN_OUT, TOKENS } from "./paths";
import type { Machine, Member, NewLink, NewToken, TokenItem } from "./schema";
import type { SectionProps } from "./section";
import { Secret } from "./share-button";
import { useHubChange } from "./use-hub";

const WHOSE = [
  { value: "mine", label: "Mine" },
  { value: "all", label: "Everybody's" },
] as const;

export function AccessSection({ isAdmin }: SectionProps) {
  const [whose, setWhose] = useState<"mine" | "all">("mine");
  const members = useItems<Member>(MEMBERS);
  const nameOf = (id: string | null) => members.find(({ user }) => user.id === id)?.user.name ?? id ?? "";
  const parameters = { everybody: whose === "all" || undefined };
  return (
    <>
      {isAdmin && <Segments label="Whose" choices={WHOSE} value={whose} onChange={setWhose} />}
      <HubList<Machine>
        title="Machines"
        path={MACHINES}
        parameters={parameters}
        empty="None. On a machine: turnlog hub connect, with the address of this page."
        of={({ id }) => id}
        row={({ id, name, platform, user, seen_at }) => (
          <>
            <span className="team-name">{name}</span>
            <span className="team-fact">
              {[whose === "all" && nameOf(user), platform, used(seen_at)].filter(Boolean).join(", ")}
            </span>
            <EndButton
              label="Revoke"
              question={`${name} will push and read no more, at once. What it pushed stays.`}
              path={`${MACHINES}/${id}`}
            />
          </>
        )}
      />
      <HubList<TokenItem>
        title="Tokens and browsers"
        path={TOKENS}
        parameters={parameters}
        empty="None."
        of={({ id }) => id}
        row={(token) => (
          <>
            <span className="team-name">{token.kind === "browser" ? "Browser" : token.name}</span>
            <span className="team-fact">
              {[
                whose === "all" && nameOf(token.user),
                token.scopes.join(" "),
                used(token.used_at),
                token.expires_at && `until ${formatExact(token.expires_at)}`,
              ]
                .filter(Boolean)
                .join(", ")}
            </span>
            <EndButton
              label="Revoke"
              question="This access ends at once. If it is this browser, you are signed out."
              path={`${TOKENS}/${token.id}`}
            />
          </>
        )}
      />
      <NewTokenForm isAdmin={isAdmin} />
      <Browsers />
    </>
  );
}

function used(time: string | null): string {
  return time ? `last seen ${formatRelative(time, new Date())}` : "never seen";
}

function NewTokenForm({ isAdmin }: { isAdmin: boolean }) {
  const make = useHubChange<NewToken>();
  const scopes = ["read", "push", ...(isAdmin ? ["admin"] : [])];
  return (
    <form
      className="team-form"
      aria-label="New token"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        const days = String(form.get("days"));
        const body = {
          name: form.get("name"),
          scopes: form.getAll("scope"),
          days: days ? Number(days) : null,
        };
        make.mutate({ method: "POST", path: TOKENS, body });
      }}
    >
      <label>
        New token for
        <input
          className="field"
          name="name"
          required
          maxLength={200}
          placeholder="the program that uses it"
        />
      </label>
      <fieldset className="team-checks">
        <legend>It may</legend>
        {scopes.map((scope) => (
          <label key={scope}>
            <input type="checkbox" name="scope" value={scope} defaultChecked={scope === "read"} /> {scope}
          </label>
        ))}
      </fieldset>
      <label>
        For
        <select className="field" name="days" defaultValue="90">
          <option value="7">a week</option>
          <option value="90">90 days</option>
          <option value="365">a year</option>
          <option value="">ever</option>
        </select>
      </label>
      <button type="submit" className="button" disabled={make.isPending}>
        Make a token
      </button>
      {make.error && (
        <p role="alert" className="team-problem">
          {describeFailure(make.error)}
        </p>
      )}
      {make.data && <Secret label="The token, shown this once." text={make.data.token} />}
    </form>
  );
}

function Browsers() {
  const make = useHubChange<NewLink>();
  const out = useHubChange();
  return (
    <div className="team-form">
      <button
        type="button"
        className="button"
        onClick={() => make.mutate({ method: "POST", path: SIGN_IN_LINKS, body: {} })}
      >
        Sign in another browser of mine
      </button>
      <button
        type="button"
        className="button"
        onClick={() =>
          out.mutate({ method: "POST", path: SIGN_OUT }, { onSuccess: () => location.assign("/sign-in") })
        }
      >
        Sign out
      </button>
      {make.data && (
        <Secret label="Open this there. It works once, for ten minutes." text={make.data.address} />
      )}
    </div>
  );
}
