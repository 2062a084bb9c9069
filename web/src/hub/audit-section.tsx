/** What was done and read: of what is one's own, and for admins what was done to the team. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { getJson } from "@/api/client";
import { sessionPage } from "@/api/paths";
import { useItems } from "@/api/use-items";
import { MoreButton } from "@/design/more-button";
import { Problem } from "@/design/problem";
import { Segments } from "@/design/segments";
import { FilterBar, FilterDates, FilterSelect } from "@/filters/filters";
import { countSet, useUrlFilters } from "@/filters/url-filters";
import { formatCount } from "@/format/numbers";
import { dayAfter, formatExact, formatRelative, startOf } from "@/format/time";
import { labelsOf } from "./names";
import { AUDIT, MEMBERS, TEAM_AUDIT } from "./paths";
import type { AuditEntry, AuditPage, Member } from "./schema";
import type { SectionProps } from "./section";

const FILTERS = ["of", "actor", "action", "since", "until"] as const;

const OF = [
  { value: "", label: "What is mine" },
  { value: "team", label: "The team" },
];

const OWN = ["read", "search", "share", "make link", "take link back", "connect machine", "end machine"];
const OWN_TOO = [
  "make token",
  "end token",
  "agree to rules",
  "disagree with rules",
  "forget session",
  "take session back",
  "forget old session",
  "put into trash",
  "take out of trash",
  "forget deleted session",
];
const OF_TEAM = [
  "invite",
  "take invitation back",
  "change role",
  "remove member",
  "change team",
  "begin team",
];
const OF_TEAM_TOO = ["change rules", "forget old sessions", "forget deleted sessions", "team usage"];

/** Actions that are done to a session. */
const OF_SESSIONS = new Set(["read", "search", "share", "make link", "take link back"]);

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
  const actions = isTeam ? [...OF_TEAM, ...OF_TEAM_TOO] : [...OWN, ...OWN_TOO];
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
        active={countSet(filters, ["actor", "action", "since"])}
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
          choices={actions.map((value) => ({ value, label: value }))}
          onChange={(action) => change({ action })}
        />
        <FilterDates since={filters.since} until={filters.until} onChange={change} />
      </FilterBar>
      {log.isError && <Problem error={log.error} what="The audit log" />}
      {log.data && entries.length === 0 && (
        <p className="team-note">
          {isTeam
            ? "Nothing was done to the team."
            : "Nobody else has read what is yours, and nothing was done to it."}
        </p>
      )}
      {entries.length > 0 && (
        <div className="usage-table audit-table" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {["When", "Who", "Did", "To", "Times", "More"].map((column) => (
                  <th scope="col" key={column}>
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={`${entry.last_at} ${entry.actor} ${entry.action} ${entry.subject}`}>
                  <th scope="row" title={formatExact(entry.last_at)}>
                    {formatRelative(entry.last_at, new Date())}
                  </th>
                  <td>{actorOf(entry, names)}</td>
                  <td>{entry.action}</td>
                  <td>
                    <Subject entry={entry} names={names} />
                  </td>
                  <td>{formatCount(entry.times)}</td>
                  <td>{withNames(entry.detail ?? "", names)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {log.hasNextPage && <MoreButton pages={log} />}
    </section>
  );
}

function actorOf({ actor }: AuditEntry, names: Record<string, string>): string {
  if (actor.startsWith("link:")) return "somebody with a link";
  return names[actor] ?? (actor === "hub" ? "the hub" : actor);
}

/** A session may be shown to several people, of whom the entry has the ids. */
function withNames(detail: string, names: Record<string, string>): string {
  const words = detail.split(" ");
  const named = words.map((word) => names[word] ?? word);
  return words.some((word) => word in names) ? named.join(", ").replace(", ", ": ") : detail;
}

function Subject({
  entry: { action, subject },
  names,
}: {
  entry: AuditEntry;
  names: Record<string, string>;
}) {
  if (!OF_SESSIONS.has(action)) return names[subject] ?? subject;
  // A session that is not there any more, or not shown, has no title here and no page.
  if (names[subject] === undefined) return subject;
  return (
    <Link href={sessionPage(subject)} className="link" title={subject}>
      {names[subject]}
    </Link>
  );
}
