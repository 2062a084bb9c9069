/** The team of a hub: its people, machines and tokens, rules, what it used, and what was done and read. */

import { Link, Redirect, useParams } from "wouter";
import { ProblemBox } from "@/design/problem";
import { useStatus } from "@/shell/status-line";
import { useTitle } from "@/shell/title";
import { AccessSection } from "./access-section";
import { AuditSection } from "./audit-section";
import { PeopleSection } from "./people-section";
import { RulesSection } from "./rules-section";
import { TeamUsageSection } from "./team-usage-section";
import { TrashSection } from "./trash-section";
import { useMe } from "./use-hub";
import "./team.css";

const SECTIONS = [
  { name: "people", label: "People", forAdmins: false, Section: PeopleSection },
  { name: "access", label: "Machines and tokens", forAdmins: false, Section: AccessSection },
  { name: "rules", label: "Rules", forAdmins: false, Section: RulesSection },
  { name: "usage", label: "Usage", forAdmins: true, Section: TeamUsageSection },
  { name: "audit", label: "Audit log", forAdmins: false, Section: AuditSection },
  { name: "trash", label: "Trash", forAdmins: false, Section: TrashSection },
];

export default function TeamPage() {
  const status = useStatus();
  const me = useMe();
  const { section = "people" } = useParams<{ section?: string }>();
  useTitle("Team");
  if (!SECTIONS.some(({ name }) => name === section)) return <Redirect to="/team" replace />;
  if (status && !status.hub) return <Redirect to="/" replace />;
  if (!me) return <main className="page" aria-busy="true" />;
  const isAdmin = me.scopes.includes("admin");
  const shown = SECTIONS.filter(({ forAdmins }) => isAdmin || !forAdmins);
  const current = shown.find(({ name }) => name === section);
  if (!me.user || !current) {
    return (
      <ProblemBox title="This is not shown to you" whole>
        <p>{me.user ? "Only owners and admins see it." : "Your link shows one session, and nothing else."}</p>
        {me.user && (
          <p>
            <Link href="/team" className="link">
              To the page of the team
            </Link>
          </p>
        )}
      </ProblemBox>
    );
  }
  return (
    <main className="page team">
      <div className="page-head">
        <h1>{me.team.name || "Team"}</h1>
        <p className="page-count">
          {me.user.name}, {me.role}
        </p>
      </div>
      <nav className="team-sections" aria-label="Team">
        {shown.map(({ name, label }) => (
          <Link
            key={name}
            href={name === "people" ? "/team" : `/team/${name}`}
            aria-current={name === current.name ? "page" : undefined}
          >
            {label}
          </Link>
        ))}
      </nav>
      <current.Section me={me} isAdmin={isAdmin} />
    </main>
  );
}
