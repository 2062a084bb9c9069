/** Who sees a session of one's own on a hub: the button says it, its dialog changes it. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { getJson } from "@/api/client";
import type { SessionItem } from "@/api/types";
import { useItems } from "@/api/use-items";
import { CopyButton } from "@/design/copy-button";
import { FormDialog } from "@/design/form-dialog";
import { Icon } from "@/design/icon";
import { describeFailure } from "@/design/problem";
import { formatExact } from "@/format/time";
import type { UploadLevel } from "./level";
import { linksPath, MEMBERS, sharingPath } from "./paths";
import type { Member, NewLink, SessionSharing, SharingBody } from "./schema";
import { useHubChange, useIsHub, useIsOwn, useMe } from "./use-hub";
import "./team.css";

export const SHOWN_TO: Record<SessionSharing["visibility"], string> = {
  private: "Only me",
  people: "Some people",
  team: "The team",
  link: "With a link",
};

/** What whoever reads a session sees of it, by its upload level. */
const READERS_SEE: Record<UploadLevel, string> = {
  metrics: "Its words are not on this hub: only its numbers are seen.",
  redacted: "Secrets that were recognised were taken out before it was sent.",
  full: "It was sent in full: its secrets are seen, too.",
};

export function ShareButton({ session }: { session: SessionItem }) {
  const [open, setOpen] = useState(false);
  const isHub = useIsHub();
  const isOwn = useIsOwn(session);
  const sharing = useQuery({
    queryKey: [sharingPath(session.id)],
    queryFn: ({ signal }) => getJson<SessionSharing>(sharingPath(session.id), {}, signal),
    enabled: isHub && isOwn,
  });
  if (!isHub || !isOwn || !sharing.data) return null;
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)} title="Who sees this session">
        <Icon name="people" size={14} />{" "}
        <span>
          <span className="visually-hidden">Shown to: </span>
          {SHOWN_TO[sharing.data.visibility]}
        </span>
      </button>
      {open && <ShareDialog session={session} sharing={sharing.data} onClose={() => setOpen(false)} />}
    </>
  );
}

interface ShareDialogProps {
  session: SessionItem;
  sharing: SessionSharing;
  onClose: () => void;
}

function ShareDialog({ session, sharing, onClose }: ShareDialogProps) {
  const me = useMe();
  const change = useHubChange();
  const [visibility, setVisibility] = useState(sharing.visibility);
  const [needsLink, setNeedsLink] = useState(false);
  const others = useItems<Member>(MEMBERS).filter(({ user }) => user.id !== me?.user?.id);
  const save = (_: unknown, form: FormData) => {
    if (visibility === "link") return sharing.links.length > 0 ? onClose() : setNeedsLink(true);
    const people = visibility === "people" ? form.getAll("person").map(String) : [];
    const body: SharingBody = { visibility, people };
    change.mutate({ method: "PUT", path: sharingPath(session.id), body }, { onSuccess: onClose });
  };
  return (
    <FormDialog
      label="Who sees this session"
      onSave={save}
      onClose={onClose}
      isSaving={change.isPending}
      error={change.error}
    >
      <fieldset className="share-choices">
        <legend>It is shown to</legend>
        {(Object.keys(SHOWN_TO) as (keyof typeof SHOWN_TO)[]).map((each) => (
          <label key={each} className="form-check">
            <input
              type="radio"
              name="visibility"
              value={each}
              checked={each === visibility}
              onChange={() => setVisibility(each)}
            />
            {SHOWN_TO[each]}
          </label>
        ))}
      </fieldset>
      {visibility === "people" && (
        <fieldset className="share-choices share-people">
          <legend>People</legend>
          {others.length === 0 && <p className="form-text">Nobody else is in the team yet.</p>}
          {others.map(({ user }) => (
            <label key={user.id} className="form-check">
              <input
                type="checkbox"
                name="person"
                value={user.id}
                defaultChecked={sharing.people.includes(user.id)}
              />
              {user.name}
            </label>
          ))}
        </fieldset>
      )}
      {visibility === "link" && <Links session={session} sharing={sharing} />}
      {visibility === "link" && needsLink && sharing.links.length === 0 && (
        <p className="form-problem" role="alert">
          Nothing has changed yet: make a link.
        </p>
      )}
      {visibility !== "link" && sharing.links.length > 0 && (
        <p className="form-text">Its links end with this.</p>
      )}
      {session.upload_level && <p className="form-text">{READERS_SEE[session.upload_level]}</p>}
      <p className="form-text">
        Subagents are shown with it. Who reads it is noted, and shown to you under Team, Audit log.
      </p>
    </FormDialog>
  );
}

const TIMES = [
  { days: 1, label: "A day" },
  { days: 7, label: "A week" },
  { days: 30, label: "30 days" },
  { days: null, label: "Until it is revoked" },
];

function Links({ session, sharing }: { session: SessionItem; sharing: SessionSharing }) {
  const [days, setDays] = useState("7");
  const make = useHubChange<NewLink>();
  const end = useHubChange();
  const error = make.error ?? end.error;
  const path = linksPath(session.id);
  return (
    <div className="share-links">
      <p className="form-text">Whoever has a link reads the session without signing in.</p>
      {sharing.links.length > 0 && (
        <ul aria-label="Links">
          {sharing.links.map(({ id, expires_at }) => (
            <li key={id}>
              <span>{expires_at ? `until ${formatExact(expires_at)}` : "until it is revoked"}</span>
              <button
                type="button"
                className="button"
                onClick={() => end.mutate({ method: "DELETE", path: `${path}/${id}` })}
              >
                Revoke
              </button>
            </li>
          ))}
        </ul>
      )}
      <div className="share-new">
        <label>
          It works for
          <select className="field" value={days} onChange={(event) => setDays(event.target.value)}>
            {TIMES.map(({ days: each, label }) => (
              <option key={label} value={each ?? ""}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          className="button"
          disabled={make.isPending}
          onClick={() => make.mutate({ method: "POST", path, body: { days: days ? Number(days) : null } })}
        >
          Make a link
        </button>
      </div>
      {make.data && <Secret label="The link, shown this once" text={make.data.address} />}
      {error && (
        <p className="form-problem" role="alert">
          {describeFailure(error)}
        </p>
      )}
    </div>
  );
}

/** Something that is shown once, to be copied. */
export function Secret({ label, text }: { label: string; text: string }) {
  return (
    <p className="secret" role="status">
      <span>{label}</span>
      <code>{text}</code>
      <CopyButton label="Copy" text={() => text} />
    </p>
  );
}
