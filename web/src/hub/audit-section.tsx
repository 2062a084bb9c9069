/** What was done and read: of what is one's own, and for admins what was done to the team. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { getJson } from "@/api/client";
import { useItems } from "@/api/use-items";
import { MoreButton } from "@/design/more-button";
import { Problem } from "@/design/problem";
import { Segments } from "@/design/segments";
import { FilterBar, FilterDates, FilterSelect } from "@/filters/filters";
import { countSet, useUrlFilters } from "@/filters/url-filters";
import { dayAfter, formatExact, formatRelative, startOf } from "@/format/time";
import { type Names, OWN_ACTIONS, sentenceOf, TEAM_ACTIONS } from "./audit-sentences";
import { labelsOf } from "./names";
import { AUDIT, MEMBERS, TEAM_AUDIT } from "./paths";
import type { AuditEntry, AuditPage, Member } from "./schema";
import type { SectionProps } from "./section";

const FILTERS = ["of", "actor", "action", "since", "until"] as const;

const OF = [
  { value: "", label: "What is mine" },
  { value: "team", label: "The team" },
];

const EMPTY = {
  team: "Nothing was done to the team.",
  mine: "Nobody else has read what is yours, and nothing was done to it.",
};

/** What ids of people begin with. */
const PERSON = "u-";

const PAGE = 100;

export function AuditSection({ isAdmin }: SectionProps) {
  const [filters, change] = useUrlFilters(FILTERS);
  const isTeam = isAdmin && filters.of === "team";
  const members = useItems<Member>(MEMBERS).map(({ user }) => user);
  const path = isTeam ? TEAM_AUDIT : AUDIT;
  const parameters = {
    actor: filters.actor,
    action: filters.action,
    since: filters.since && startOf(filters.since),
    limit: PAGE,
  };
  const until = filters.until && startOf(dayAfter(filters.until));
  const log = useInfiniteQuery({
    queryKey: [path, parameters, until],
    queryFn: ({ pageParam, signal }) =>
      getJson<AuditPage>(path, { ...parameters, before: pageParam }, signal),
    initialPageParam: until,
    getNextPageParam: ({ items }) => (items.length < PAGE ? undefined : items.at(-1)?.last_at),
    placeholderData: (previous) => previous,
  });
  const entries = log.data?.pages.flatMap(({ items }) => items) ?? [];
  const known = Object.assign({}, ...(log.data?.pages.map((page) => page.names) ?? [])) as Record<
    string,
    string
  >;
  // Who has left may have the name of who is here.
  const left = Object.entries(known).flatMap(([id, name]) =>
    id.startsWith(PERSON) && !members.some((each) => each.id === id) ? { id, name } : [],
  );
  const labels = labelsOf([...members, ...left]);
  const names = { ...known, ...Object.fromEntries(labels) };
  const filtered = countSet(filters, ["actor", "action", "since", "until"]);
  const actions = isTeam ? TEAM_ACTIONS : OWN_ACTIONS;
  return (
    <section className="team-section" aria-label="Audit log">
      <FilterBar
        label="Audit filters"
        first={
          isAdmin && (
            <Segments
              label="Of"
              choices={OF}
              value={isTeam ? "team" : ""}
              onChange={(of) => change({ of, action: "" })}
            />
          )
        }
        active={filtered}
      >
        <FilterSelect
          label="Person"
          everything="Everybody"
          value={filters.actor}
          choices={members.map(({ id, name }) => ({ value: id, label: labels.get(id) ?? name }))}
          onChange={(actor) => change({ actor })}
        />
        <FilterSelect
          label="Action"
          everything="All actions"
          value={filters.action}
          choices={Object.entries(actions).map(([value, { label }]) => ({ value, label }))}
          onChange={(action) => change({ action })}
        />
        <FilterDates since={filters.since} until={filters.until} onChange={change} />
      </FilterBar>
      {log.isError && <Problem error={log.error} what="The audit log" />}
      {log.data && entries.length === 0 && (
        <p className="team-note">
          {filtered > 0 ? "Nothing in the log is like this." : EMPTY[isTeam ? "team" : "mine"]}
        </p>
      )}
      {entries.length > 0 && (
        <ul className="audit-list" aria-label="Entries">
          {entries.map((entry) => (
            <Entry
              key={`${entry.last_at} ${entry.actor} ${entry.action} ${entry.subject}`}
              entry={entry}
              names={names}
            />
          ))}
        </ul>
      )}
      {log.hasNextPage && <MoreButton pages={log} />}
    </section>
  );
}

/** A sentence and its time; the fields behind it, as the API has them, open below. */
function Entry({ entry, names }: { entry: AuditEntry; names: Names }) {
  const [open, setOpen] = useState(false);
  const { action, actor, subject, detail, times, last_at } = entry;
  const fields = { action, actor, subject, detail, times, last_at };
  return (
    <li>
      <time dateTime={last_at} title={formatExact(last_at)}>
        {formatRelative(last_at, new Date())}
      </time>
      <p>{sentenceOf(entry, names)}</p>
      <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
        Details
      </button>
      {open && (
        <dl>
          {Object.entries(fields).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value ?? "none"}</dd>
            </div>
          ))}
        </dl>
      )}
    </li>
  );
}
