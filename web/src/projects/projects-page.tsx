/** All projects, the last used first: each can be renamed, and merged into another. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { Link } from "wouter";
import { getJson, sendJson } from "@/api/client";
import { PROJECTS } from "@/api/paths";
import type { ProjectSummary, ProjectsResponse } from "@/api/types";
import { FormDialog } from "@/design/form-dialog";
import { Icon } from "@/design/icon";
import { PathEnd } from "@/design/path-end";
import { Problem } from "@/design/problem";
import { plural } from "@/format/numbers";
import { formatExact, formatRelative } from "@/format/time";
import { useListKeys } from "@/shell/keys";
import { useTitle } from "@/shell/title";
import "./projects.css";

export default function ProjectsPage() {
  const projects = useQuery({
    queryKey: ["projects"],
    queryFn: ({ signal }) => getJson<ProjectsResponse>(PROJECTS, {}, signal),
  });
  const list = useRef<HTMLUListElement>(null);
  useTitle("Projects");
  useListKeys(list);
  const items = projects.data?.items ?? [];
  return (
    <main className="page projects">
      <div className="page-head">
        <h1>Projects</h1>
        {items.length > 0 && <p className="page-count">{plural(items.length, "project")}</p>}
      </div>
      {projects.isError && <Problem error={projects.error} what="The list of projects" />}
      {projects.data && items.length === 0 && (
        <div className="problem">
          <h2>No project yet</h2>
          <p>A project is the folder or repository in which an agent ran.</p>
        </div>
      )}
      <ul ref={list} className="project-list" aria-busy={projects.isFetching}>
        {items.map((project) => (
          <ProjectRow key={project.path} project={project} all={items} />
        ))}
      </ul>
    </main>
  );
}

interface ProjectProps {
  project: ProjectSummary;
  all: ProjectSummary[];
}

function ProjectRow({ project, all }: ProjectProps) {
  const [open, setOpen] = useState(false);
  return (
    <li className="project-row">
      <Link href={`/?project=${encodeURIComponent(project.path)}`} className="project-link" data-item>
        <span className="project-name">{project.name}</span>
        <PathEnd className="project-path" path={project.path} />
        <span className="project-figure">{plural(project.sessions, "session")}</span>
        <span
          className="project-figure"
          title={project.updated_at ? formatExact(project.updated_at) : undefined}
        >
          {project.updated_at ? formatRelative(project.updated_at, new Date()) : "time unknown"}
        </span>
      </Link>
      <button
        type="button"
        className="icon-button"
        aria-label={`Rename or merge ${project.name}`}
        title="Rename or merge"
        onClick={() => setOpen(true)}
      >
        <Icon name="edit" size={14} />
      </button>
      {project.merged?.map((path) => (
        <MergedFolder key={path} path={path} />
      ))}
      {open && <ProjectDialog project={project} all={all} onClose={() => setOpen(false)} />}
    </li>
  );
}

function ProjectDialog({ project, all, onClose }: ProjectProps & { onClose: () => void }) {
  const change = useProjectChange();
  return (
    <FormDialog
      label={`Project ${project.name}`}
      onSave={(text) => {
        const into = text("into");
        const body = { path: project.path, name: text("name"), ...(into && { merged_into: into }) };
        change.mutate(body, { onSuccess: onClose });
      }}
      onClose={onClose}
      isSaving={change.isPending}
      error={change.error}
    >
      <label>
        Name
        <input
          className="field"
          name="name"
          defaultValue={project.name}
          placeholder="the name of its folder"
        />
      </label>
      <label>
        Merge into
        <select className="field" name="into" defaultValue="">
          <option value="">No other project</option>
          {all
            .filter(({ path }) => path !== project.path)
            .map(({ path, name }) => (
              <option key={path} value={path}>
                {name} ({path})
              </option>
            ))}
        </select>
      </label>
    </FormDialog>
  );
}

/** A folder whose sessions count to the project. */
function MergedFolder({ path }: { path: string }) {
  const change = useProjectChange();
  return (
    <p className="project-merged">
      with <PathEnd className="project-path" path={path} />
      <button
        type="button"
        className="link"
        disabled={change.isPending}
        onClick={() => change.mutate({ path, merged_into: null })}
      >
        Split
      </button>
      {change.isError && <span role="alert">{change.error.message}</span>}
    </p>
  );
}

interface ProjectChange {
  path: string;
  name?: string | null;
  merged_into?: string | null;
}

/** Changes a project. Every page may show its name, so all of them ask again. */
function useProjectChange() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (change: ProjectChange) => sendJson<ProjectSummary>("PATCH", PROJECTS, change),
    onSuccess: () => queries.invalidateQueries(),
  });
}
