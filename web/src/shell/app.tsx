/** The frame around every page, and which page an address means. The session page loads when one is opened. */

import { lazy, Suspense } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { usePathname } from "wouter/use-browser-location";
import { sessionOfPage } from "@/api/paths";
import { AllSessions, ProblemBox } from "@/design/problem";
import { PaletteKeys } from "@/palette/palette-keys";
import { SessionsPage } from "@/sessions/sessions-page";
import { KeyHelp } from "./key-help";
import { PageBoundary } from "./page-boundary";
import { SampleNotice, StatusLine, useIsAway, useStatus } from "./status-line";
import { TopBar } from "./top-bar";
import { useLive } from "./use-live";
import "./shell.css";

const SessionPage = lazy(() => import("@/session/page/session-page"));
const SearchPage = lazy(() => import("@/search/search-page"));
const FilesPage = lazy(() => import("@/files/files-page"));
const ProjectsPage = lazy(() => import("@/projects/projects-page"));
const InsightsPage = lazy(() => import("@/insights/insights-page"));
const TeamPage = lazy(() => import("@/hub/team-page"));
const UsagePage = lazy(() => import("@/usage/usage-page"));

export function App() {
  const status = useStatus();
  const isAway = useIsAway();
  const [location] = useLocation();
  useLive(!location.startsWith("/sessions/"));
  return (
    <>
      <TopBar />
      <div className="shell-body">
        <SampleNotice status={status} />
        <PageBoundary location={location}>
          <Suspense fallback={<Loading />}>
            <Switch>
              <Route path="/" component={SessionsPage} />
              <Route path="/sessions">
                <Redirect to="/" replace />
              </Route>
              <Route path="/sessions/:id" component={SessionRoute} />
              <Route path="/search" component={SearchPage} />
              <Route path="/files" component={FilesPage} />
              <Route path="/projects" component={ProjectsPage} />
              <Route path="/usage" component={UsagePage} />
              <Route path="/team" component={TeamPage} />
              <Route path="/team/:section" component={TeamPage} />
              <Route path="/insights" component={InsightsPage} />
              <Route>
                <ProblemBox title="There is no such page" whole>
                  <AllSessions />
                </ProblemBox>
              </Route>
            </Switch>
          </Suspense>
        </PageBoundary>
      </div>
      <StatusLine status={status} isAway={isAway} />
      <KeyHelp />
      <PaletteKeys />
    </>
  );
}

/** The id comes from the address as it is: what wouter gives is decoded in part. */
function SessionRoute() {
  const id = sessionOfPage(usePathname());
  return <SessionPage key={id} id={id} />;
}

/** Shown while the code of a page is loaded. */
function Loading() {
  return (
    <main className="page" aria-busy="true">
      <h1 className="visually-hidden">Loading</h1>
    </main>
  );
}
