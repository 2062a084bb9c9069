/** Which sessions the lines of a file came from, as it is in its folder now. Loaded when it is asked for. */

import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { getJson } from "@/api/client";
import { FILE_LINES, sessionPage } from "@/api/paths";
import type { FileLinesResponse, LineRange } from "@/api/types";
import { Problem } from "@/design/problem";
import { formatCount, plural } from "@/format/numbers";

export function FileLines({ path }: { path: string }) {
  const [isOpen, setOpen] = useState(false);
  const lines = useQuery({
    queryKey: ["file-lines", path],
    queryFn: ({ signal }) => getJson<FileLinesResponse>(FILE_LINES, { path }, signal),
    enabled: isOpen,
    retry: false,
  });
  if (!isOpen)
    return (
      <button type="button" className="button file-lines-button" onClick={() => setOpen(true)}>
        Show which session each line came from
      </button>
    );
  return (
    <section className="file-lines" aria-label="Lines" aria-busy={lines.isFetching}>
      {lines.isError && <Problem error={lines.error} what="Where its lines came from" />}
      {lines.isFetching && <p className="file-note">Asking git…</p>}
      {lines.data && (
        <>
          <p className="file-note">{summary(lines.data.lines)}</p>
          <ol>
            {lines.data.lines.map((range) => (
              <Range key={range.first} range={range} />
            ))}
          </ol>
        </>
      )}
    </section>
  );
}

function Range({ range: { first, last, commit, link } }: { range: LineRange }) {
  return (
    <li>
      <span className="file-figure">{first === last ? first : `${first}–${last}`}</span>
      <code>{commit?.slice(0, 7) ?? "not committed"}</code>
      {link ? (
        <Link href={sessionPage(link.session_id, link.message_id)} title={link.prompt ?? undefined}>
          {link.title ?? link.session_id}
          {link.turn !== null && <span className="file-in"> turn {link.turn}</span>}
        </Link>
      ) : (
        <span className="file-in">no session</span>
      )}
      {link && <span className="file-figure">{link.confidence}</span>}
    </li>
  );
}

function summary(ranges: LineRange[]): string {
  const count = (found: LineRange[]) => found.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  const linked = ranges.filter(({ link }) => link);
  const sessions = new Set(linked.map(({ link }) => link?.session_id)).size;
  return `${formatCount(count(linked))} of ${formatCount(count(ranges))} lines came from ${plural(sessions, "session")}.`;
}
