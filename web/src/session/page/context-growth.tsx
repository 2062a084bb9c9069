/** How the context of a session grew: a bar a step, or the largest of some steps, with a table and as CSV. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { formatAnchor } from "@/api/anchor";
import { getJson } from "@/api/client";
import { download } from "@/api/files";
import { contextPath } from "@/api/paths";
import type { ContextResponse, ContextStep } from "@/api/types";
import { BarChart } from "@/charts/bar-chart";
import { FiguresTable } from "@/charts/figures-table";
import type { Chart } from "@/charts/series";
import { LoadButton } from "@/design/load-button";
import { Problem } from "@/design/problem";
import { formatCompact, formatRoundCount, formatTokens } from "@/format/numbers";
import { formatClock } from "@/format/time";
import "@/usage/usage.css";
import "./context-growth.css";

/** A chart has room for so many bars. */
const MOST_BARS = 160;

const CONTEXT = "context";
const COMPACTED = "compacted";

export default function ContextGrowth({ id, onClose }: { id: string; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  // A step was chosen: the page goes there.
  useEffect(() => {
    window.addEventListener("hashchange", onClose);
    return () => window.removeEventListener("hashchange", onClose);
  }, [onClose]);
  const answer = useQuery({
    queryKey: ["context", id],
    queryFn: ({ signal }) => getJson<ContextResponse>(contextPath(id), {}, signal),
  });
  const steps = useMemo(
    () => answer.data?.items.filter((step) => step.context !== null) ?? [],
    [answer.data],
  );
  return (
    <dialog ref={dialog} className="context-growth" aria-label="How the context grew" onClose={onClose}>
      <div className="context-head">
        <h2>How the context grew</h2>
        <LoadButton className="button" load={() => download(`${contextPath(id)}?format=csv`)}>
          CSV
        </LoadButton>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
      </div>
      {answer.isError && <Problem error={answer.error} what="The context" />}
      {answer.data && steps.length === 0 && <p>No log says how large the context was.</p>}
      {steps.length > 0 && (
        <>
          <BarChart title="Tokens of the context by step" chart={chartOf(steps)} />
          <StepTable steps={steps} />
        </>
      )}
    </dialog>
  );
}

/** Steps side by side; of many neighbours the one after a compaction, else the largest. */
export function chartOf(steps: ContextStep[]): Chart {
  const size = Math.ceil(steps.length / MOST_BARS);
  const groups = Array.from({ length: Math.ceil(steps.length / size) }, (_, index) =>
    steps.slice(index * size, (index + 1) * size),
  );
  const messages = new Map<string, string>();
  const periods = groups.map((group) => {
    const largest = group.reduce((one, other) => ((other.context ?? 0) > (one.context ?? 0) ? other : one));
    const compacted = group.find(({ is_compacted }) => is_compacted);
    const shown = compacted ?? largest;
    const name = String(shown.position);
    messages.set(name, shown.message_id);
    const label = shown.created_at ? formatClock(shown.created_at) : `Turn ${shown.turn ?? "?"}`;
    return { name, label, values: new Map([[compacted ? COMPACTED : CONTEXT, shown.context ?? 0]]) };
  });
  const series = [
    { key: CONTEXT, name: "Context" },
    { key: COMPACTED, name: "After a compaction" },
  ]
    .filter(({ key }) => periods.some(({ values }) => values.has(key)))
    .map((one, colour) => ({
      ...one,
      colour,
      href: null,
      hrefAt: (name: string) => `#${formatAnchor(messages.get(name) ?? "")}`,
    }));
  return { periods, series, format: formatCompact, formatTick: formatRoundCount };
}

function labelOf({ turn, created_at }: ContextStep): string {
  return [turn !== null && `Turn ${turn}`, created_at && formatClock(created_at)].filter(Boolean).join(", ");
}

function StepTable({ steps }: { steps: ContextStep[] }) {
  return (
    <FiguresTable
      columns={["Step", "Context", "From cache", "Output", "Compaction"]}
      rows={steps.map((step) => ({
        key: String(step.position),
        cells: [
          <a key="step" href={`#${formatAnchor(step.message_id)}`}>
            {labelOf(step) || step.message_id}
          </a>,
          formatTokens(step.context),
          formatTokens(step.cached),
          formatTokens(step.output),
          step.is_compacted ? "before this step" : "",
        ],
      }))}
    />
  );
}
