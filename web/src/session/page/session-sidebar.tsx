/** What stands beside a session: its prompts, pinned messages and relatives, or the list of sessions. */

import { useState } from "react";
import type { OutlineEntry, SessionItem } from "@/api/types";
import { Segments } from "@/design/segments";
import { Commits } from "./commits";
import { OtherSessions } from "./other-sessions";
import { Outline } from "./outline";
import { Pins } from "./pins";
import { Relatives } from "./relatives";
import "./sidebar.css";

const VIEWS = [
  { value: "prompts", label: "Prompts" },
  { value: "sessions", label: "Sessions" },
] as const;

type View = (typeof VIEWS)[number]["value"];

/** The choice lasts as long as the page is open, from session to session. */
let chosen: View = "prompts";

interface SessionSidebarProps {
  sessionId: string;
  /** Undefined until it is loaded. */
  outline: OutlineEntry[] | undefined;
  position: number;
  /** How many messages the session has. */
  messages: number;
  subagents: SessionItem[];
  forks: SessionItem[];
  onJump: (position: number) => void;
}

export function SessionSidebar({
  sessionId,
  outline,
  position,
  messages,
  subagents,
  forks,
  onJump,
}: SessionSidebarProps) {
  const [view, setView] = useState(chosen);
  const choose = (wanted: View) => {
    chosen = wanted;
    setView(wanted);
  };
  return (
    <div className="sidebar">
      <Segments label="Sidebar" choices={VIEWS} value={view} onChange={choose} />
      {view === "sessions" ? (
        <OtherSessions sessionId={sessionId} />
      ) : (
        outline && (
          <>
            <Pins entries={outline} onJump={onJump} />
            <div className="sidebar-scroll">
              <Outline entries={outline} position={position} onJump={onJump} />
              <Commits sessionId={sessionId} messages={messages} onJump={onJump} />
              <Relatives subagents={subagents} forks={forks} />
            </div>
          </>
        )
      )}
    </div>
  );
}
