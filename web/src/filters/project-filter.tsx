/** By project, the last used first. */

import { PROJECTS } from "@/api/paths";
import type { ProjectSummary } from "@/api/types";
import { useItems } from "@/api/use-items";
import type { FilterProps } from "./filter-props";
import { FilterSelect } from "./filter-select";
import { projectLabels } from "./project-label";

export function ProjectFilter({ value, onChange }: FilterProps) {
  const projects = useItems<ProjectSummary>(PROJECTS);
  const labels = projectLabels(projects);
  const choices = projects.map(({ path, name }) => ({ value: path, label: labels.get(path) ?? name }));
  return (
    <FilterSelect
      label="Project"
      everything="All projects"
      value={value}
      choices={choices}
      onChange={onChange}
    />
  );
}
