/** Ways from a figure to what it counts: lists with the filters of the report, and one more. */

import { createContext, useContext } from "react";
import { Link } from "wouter";
import { queryString } from "@/api/client";

type Parameters = Record<string, string>;

/** The filters of the report, as they are in the address. */
export const ReportFilters = createContext<Parameters>({});

/** The list of sessions with these filters. */
export function sessionsPage(filters: Parameters): string {
  return `/${queryString(filters)}`;
}

/** The same with the filters of the report besides. */
export function useSessionsPage(): (to: Parameters) => string {
  const filters = useContext(ReportFilters);
  return (to) => sessionsPage({ ...filters, ...to });
}

interface FigureLinkProps {
  /** What the list is narrowed to besides the report's own filters. */
  to: Parameters;
  children: React.ReactNode;
}

/** A figure that leads to its sessions. */
export function SessionsLink({ to, children }: FigureLinkProps) {
  const page = useSessionsPage();
  return <Link href={page(to)}>{children}</Link>;
}

/** A figure that leads to the calls and texts that it counts, grouped by session. */
export function SearchLink({ to, children }: FigureLinkProps) {
  const filters = useContext(ReportFilters);
  return <Link href={`/search${queryString({ ...filters, ...to })}`}>{children}</Link>;
}
