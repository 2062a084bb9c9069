/** What a call changed, file by file. */

import { type ReactNode, useMemo } from "react";
import { Diff } from "@/content/diff";
import { countChanges, type DiffLine } from "@/content/diff-lines";
import { languageOf } from "@/content/languages";
import type { ChangeVerb, FileChange } from "@/content/patches";
import { plural } from "@/format/numbers";
import { useSessionContext } from "@/session/session-context";
import { relativeTo } from "./tool-summary";
import "./change-view.css";

const VERBS: Record<ChangeVerb, string> = { edit: "", create: "new", delete: "deleted", move: "moved" };

/** Lines of a diff that are shown; more would stall the page. */
const LONGEST = 2_000;

export function Changes({ changes }: { changes: FileChange[] }) {
  return changes.map((change, index) => <Change key={index} change={change} lines={change.lines} />);
}

/** The first lines of the changes, for a folded call. */
export function ChangesGlance({ changes, onMore }: { changes: FileChange[]; onMore: () => void }) {
  const several = changes.length > 1;
  const shares = useMemo(() => shareOut(changes, several), [changes, several]);
  const hidden = changes.reduce(
    (sum, { lines }, index) => sum + lines.length - (shares[index]?.length ?? 0),
    0,
  );
  return (
    <div className="glance">
      {changes.map((change, index) =>
        shares[index] && shares[index].length > 0 ? (
          <Change key={index} change={change} lines={shares[index]} titled={several} />
        ) : null,
      )}
      {hidden > 0 && (
        <button type="button" className="link glance-more" onClick={onMore}>
          {plural(hidden, "more line")}
        </button>
      )}
    </div>
  );
}

const GLANCE = 14;

/** The first lines of each file from where it changes; all of them when there are few. */
function shareOut(changes: FileChange[], several: boolean): DiffLine[][] {
  const share = several ? Math.max(3, Math.floor(GLANCE / changes.length)) : GLANCE;
  return changes.map(({ lines }, index) => {
    if (several && index * share >= GLANCE * 2) return [];
    if (lines.length <= share + 2) return lines;
    const first = lines.findIndex(({ kind }) => kind === "added" || kind === "removed");
    return lines.slice(Math.max(0, first - 2), Math.max(0, first - 2) + share);
  });
}

interface ChangeProps {
  change: FileChange;
  lines: DiffLine[];
  titled?: boolean;
}

function Change({ change, lines, titled = true }: ChangeProps) {
  const { cwd } = useSessionContext();
  const name = relativeTo(cwd, change.path) || "The change";
  const shown = useMemo(() => (lines.length > LONGEST ? lines.slice(0, LONGEST) : lines), [lines]);
  return (
    <figure className="change">
      {titled && (
        <figcaption className="change-title">
          <span className="change-path">
            {name}
            {change.movedTo && ` → ${relativeTo(cwd, change.movedTo)}`}
          </span>
          {VERBS[change.verb] && <span className="chip">{VERBS[change.verb]}</span>}
          <ChangeFigure changes={[change]} />
        </figcaption>
      )}
      {shown.length > 0 && (
        <Diff
          lines={shown}
          label={`Change of ${name}`}
          language={languageOf(change.movedTo ?? change.path)}
        />
      )}
      {shown.length < lines.length && (
        <p className="tool-note">
          {plural(lines.length - shown.length, "line")} not shown: see the raw records.
        </p>
      )}
    </figure>
  );
}

/** "+3 −1". */
export function ChangeFigure({ changes }: { changes: FileChange[] }): ReactNode {
  const counts = changes.map(({ lines }) => countChanges(lines));
  const added = counts.reduce((sum, count) => sum + count.added, 0);
  const removed = counts.reduce((sum, count) => sum + count.removed, 0);
  if (added + removed === 0) return null;
  return (
    <span className="change-figure">
      {added > 0 && <span className="change-added">+{added}</span>}
      {removed > 0 && <span className="change-removed">−{removed}</span>}
    </span>
  );
}
