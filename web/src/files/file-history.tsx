/** What was done to one file: by which sessions, and each change as a diff, the newest first. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "wouter";
import { getJson } from "@/api/client";
import { FILES, sessionPage } from "@/api/paths";
import type { FileHistoryResponse, FileTouchItem, FileUseItem } from "@/api/types";
import { Diff } from "@/content/diff";
import { languageOf } from "@/content/languages";
import { CopyButton } from "@/design/copy-button";
import { Icon } from "@/design/icon";
import { MoreButton } from "@/design/more-button";
import { Problem } from "@/design/problem";
import { plural } from "@/format/numbers";
import { formatExact, formatRelative } from "@/format/time";
import { changesOf } from "@/session/tool/tool-changes";
import { AgentLabel } from "@/sessions/agent-label";
import { titleOf } from "@/sessions/session-title";
import { useTitle } from "@/shell/title";
import { pastedPath } from "@/shown/shell";
import { FileLines } from "./file-lines";

/** Lines of one change; more are in the session. */
const LONGEST = 200;

export function FileHistory({ path }: { path: string }) {
  const history = useInfiniteQuery({
    queryKey: ["file", path],
    queryFn: ({ pageParam, signal }) =>
      getJson<FileHistoryResponse>(FILES, { path, changed: true, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor,
  });
  const name = path.split(/[/\\]/).at(-1) ?? path;
  useTitle(name);
  const sessions = history.data?.pages[0]?.sessions ?? [];
  const touches = history.data?.pages.flatMap((page) => page.items) ?? [];
  const titles = new Map(sessions.map(({ session }) => [session.id, titleOf(session)]));
  return (
    <main className="page files">
      <div className="page-head">
        <h1 className="file-name">
          <Link href="/files" className="link">
            Files
          </Link>{" "}
          / {name}
        </h1>
        <CopyButton text={() => pastedPath(path)} label="Copy the path" />
      </div>
      <p className="file-full">{path}</p>
      {history.isError && <Problem error={history.error} what="The history of this file" />}
      <ul className="file-sessions">
        {sessions.map((use) => (
          <Use key={use.session.id} use={use} />
        ))}
      </ul>
      {path.startsWith("/") && <FileLines key={path} path={path} />}
      <div aria-busy={history.isFetching}>
        {touches.map((touch) => (
          <Touch
            key={`${touch.call.message_id}/${touch.call.tool_call_id}`}
            touch={touch}
            path={path}
            title={titles.get(touch.call.session_id) ?? ""}
          />
        ))}
      </div>
      {history.data && touches.length === 0 && (
        <p className="file-note">
          {sessions.length > 0
            ? "Tools read it and never changed it."
            : "No tool call read or changed a file with this path."}
        </p>
      )}
      {history.hasNextPage && <MoreButton pages={history} />}
    </main>
  );
}

function Use({ use: { session, calls, edits, last_at } }: { use: FileUseItem }) {
  return (
    <li>
      <Link href={sessionPage(session.id)} className="file-row">
        <span className="file-path" dir="auto">
          {titleOf(session)}
        </span>
        <span className="file-figure">
          <AgentLabel agent={session.agent} />
        </span>
        <span className="file-figure">
          {plural(calls, "call")}
          {edits > 0 && `, ${plural(edits, "edit")}`}
        </span>
        <span className="file-figure" title={last_at ? formatExact(last_at) : undefined}>
          {last_at ? formatRelative(last_at, new Date()) : "time unknown"}
        </span>
      </Link>
    </li>
  );
}

function Touch({ touch: { call, part, path: whole }, path, title }: TouchProps) {
  const lines = useMemo(() => {
    const changes = part ? changesOf(part) : [];
    const own = changes.filter((change) => whole.endsWith(change.path) || change.path.endsWith(path));
    return (own.length > 0 ? own : changes).flatMap((change) => change.lines);
  }, [part, path, whole]);
  const shown = useMemo(() => lines.slice(0, LONGEST), [lines]);
  return (
    <article className="file-touch" aria-label={`${call.tool_name} in ${title}`}>
      <h2>
        <Icon name={call.kind === "delete" ? "trash" : "edit"} size={14} />
        <Link href={sessionPage(call.session_id, call.message_id)}>
          {call.tool_name} <span className="file-in">in {title}</span>
        </Link>
        <span className="file-figure" title={call.started_at ? formatExact(call.started_at) : undefined}>
          {call.state !== "output-available" && `${call.state.replace("output-", "")} · `}
          {call.started_at && formatRelative(call.started_at, new Date())}
        </span>
      </h2>
      {lines.length > 0 && <Diff lines={shown} label={`Change of ${path}`} language={languageOf(path)} />}
      {lines.length > LONGEST && (
        <p className="file-note">{plural(lines.length - LONGEST, "more line")} in the session.</p>
      )}
    </article>
  );
}

interface TouchProps {
  touch: FileTouchItem;
  path: string;
  title: string;
}
