/** Which files the agents touched, and what was done to one of them, session by session. */

import { useUrlFilters } from "@/filters/url-filters";
import { FileHistory } from "./file-history";
import { TouchedFiles } from "./touched-files";
import "./files.css";

const FILTERS = ["path", "text", "project", "agent", "changed"] as const;

export default function FilesPage() {
  const [filters, change] = useUrlFilters(FILTERS);
  if (filters.path) return <FileHistory path={filters.path} />;
  return <TouchedFiles filters={filters} onChange={change} />;
}
