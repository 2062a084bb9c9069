/** Which files the agents touched, and what was done to one of them, session by session. */

import { useQuery } from "@tanstack/react-query";
import { useCallback, useRef } from "react";
import { Link } from "wouter";
import { getJson } from "@/api/client";
import { filePage, TOUCHED_FILES } from "@/api/paths";
import type { TouchedFiles as Answer, TouchedFile } from "@/api/types";
import { Problem } from "@/design/problem";
import { AgentFilter, FilterBar, FilterSelect, FilterText, ProjectFilter } from "@/filters/filters";
import { countSet, type Filters, useUrlFilters } from "@/filters/url-filters";
import { plural } from "@/format/numbers";
import { formatExact, formatRelative } from "@/format/time";
import { useListKeys } from "@/shell/keys";
import { useTitle } from "@/shell/title";
import { FileHistory } from "./file-history";
import "./files.css";

const FILTERS = ["path", "text", "project", "agent", "changed"] as const;

export default function FilesPage() {
  const [filters, change] = useUrlFilters(FILTERS);
  if (filters.path) return <FileHistory path={filters.path} />;
  return <TouchedFiles filters={filters} onChange={change} />;
}

/** More are found by a part of their path. */
const SHOWN = 200;

const CHANGED = [{ value: "true", label: "Changed files" }];

interface TouchedFilesProps {
  filters: Filters<"path" | "text" | "project" | "agent" | "changed">;
  onChange: (changes: Partial<TouchedFilesProps["filters"]>) => void;
}

/** The files that were read or changed, the last touched first. */
export function TouchedFiles({ filters, onChange }: TouchedFilesProps) {
  const { path: _, ...parameters } = filters;
  const files = useQuery({
    queryKey: ["files", parameters],
    queryFn: ({ signal }) => getJson<Answer>(TOUCHED_FILES, { ...parameters, limit: SHOWN }, signal),
    placeholderData: (previous) => previous,
  });
  const list = useRef<HTMLUListElement>(null);
  const changeText = useCallback((text: string) => onChange({ text }), [onChange]);
  useTitle("Files");
  useListKeys(list);
  const items = files.data?.items ?? [];
  return (
    <main className="page files">
      <div className="page-head">
        <h1>Files</h1>
        {items.length === SHOWN && <p className="page-count">the last {SHOWN} touched</p>}
      </div>
      <FilterBar
        label="File filters"
        first={
          <FilterText label="Path" placeholder="Part of a path" value={filters.text} onChange={changeText} />
        }
        active={countSet(filters, ["project", "agent", "changed"])}
      >
        <ProjectFilter value={filters.project} onChange={(project) => onChange({ project })} />
        <AgentFilter value={filters.agent} onChange={(agent) => onChange({ agent })} />
        <FilterSelect
          label="Access"
          everything="Read or changed"
          value={filters.changed}
          choices={CHANGED}
          onChange={(changed) => onChange({ changed })}
        />
      </FilterBar>
      {files.isError && <Problem error={files.error} what="The list of files" />}
      {files.data && items.length === 0 && (
        <div className="problem">
          <h2>No file here</h2>
          <p>Only what file tools did is known, not what shell commands did.</p>
        </div>
      )}
      <ul ref={list} className="file-list" aria-busy={files.isFetching}>
        {items.map((file) => (
          <FileRow key={file.path} file={file} />
        ))}
      </ul>
    </main>
  );
}

function FileRow({ file }: { file: TouchedFile }) {
  const cut = Math.max(file.path.lastIndexOf("/"), file.path.lastIndexOf("\\")) + 1;
  return (
    <li>
      <Link href={filePage(file.path)} className="file-row" data-item>
        <span className="file-path" title={file.path}>
          <span className="file-folder">{file.path.slice(0, cut)}</span>
          <span className="file-last">{file.path.slice(cut)}</span>
        </span>
        <span className="file-figure">{file.edits > 0 ? plural(file.edits, "edit") : "no edits"}</span>
        <span className="file-figure">{plural(file.sessions, "session")}</span>
        <span className="file-figure" title={file.last_at ? formatExact(file.last_at) : undefined}>
          {file.last_at ? formatRelative(file.last_at, new Date()) : "time unknown"}
        </span>
      </Link>
    </li>
  );
}
