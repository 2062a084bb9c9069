/** What each project cost in each day or week: a stacked bar a period, the costliest projects by colour. */

import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { ProjectPeriod } from "@/api/types";
import { formatCost, formatCount, formatRoundCost, formatTotalCost, UNKNOWN } from "@/format/numbers";
import { ticksFor } from "@/usage/measures";
import { FiguresTable } from "./figures-table";

const HEIGHT = 220;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;
const PLOT = HEIGHT - TOP - BOTTOM;
const LABEL_WIDTH = 64;
const DAY = 86_400_000;

/** Projects with a colour of their own; `insights.css` has as many, and one for all others. */
const COLOURS = 6;

const OTHERS = "Other projects";

const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

interface Series {
  name: string;
  path: string | null;
  total: number;
  colour: number;
}

interface Stack {
  period: string;
  /** Series -> cost. */
  costs: Map<string, number>;
}

/** The costliest projects, and the rest of them together. */
export function seriesOf(periods: ProjectPeriod[]): Series[] {
  const totals = new Map<string, Series>();
  for (const { project, label, cost } of periods) {
    const known = totals.get(project ?? "");
    const total = (known?.total ?? 0) + (cost ?? 0);
    totals.set(project ?? "", { name: label ?? project ?? UNKNOWN, path: project, total, colour: COLOURS });
  }
  const most = [...totals.values()].sort((one, other) => other.total - one.total);
  const named = most.slice(0, COLOURS).map((each, colour) => ({ ...each, colour }));
  const rest = most.slice(COLOURS);
  if (rest.length === 0) return named;
  const total = rest.reduce((sum, each) => sum + each.total, 0);
  return [...named, { name: OTHERS, path: null, total, colour: COLOURS }];
}

/** A stack for every day or week from the first to the last, also those without anything. */
export function stacksOf(periods: ProjectPeriod[], series: Series[], granularity: "day" | "week"): Stack[] {
  const own = new Set(series.map(keyOf));
  const known = new Map<string, Stack>();
  for (const { period, project, label, cost } of periods) {
    const stack = known.get(period) ?? { period, costs: new Map<string, number>() };
    const name = keyOf({ path: project, name: label ?? project ?? UNKNOWN });
    const key = own.has(name) ? name : keyOf({ path: null, name: OTHERS });
    stack.costs.set(key, (stack.costs.get(key) ?? 0) + (cost ?? 0));
    known.set(period, stack);
  }
  const names = [...known.keys()].sort();
  const [first, last] = [names.at(0), names.at(-1)];
  if (!first || !last) return [];
  const stacks: Stack[] = [];
  const step = granularity === "week" ? 7 * DAY : DAY;
  for (let time = Date.parse(first); time <= Date.parse(last); time += step) {
    const period = new Date(time).toISOString().slice(0, 10);
    stacks.push(known.get(period) ?? { period, costs: new Map() });
  }
  return stacks;
}

function keyOf({ path, name }: { path: string | null; name: string }): string {
  return path ?? `\n${name}`;
}

interface ChartProps {
  periods: ProjectPeriod[];
  granularity: "day" | "week";
}

export function ProjectChart({ periods, granularity }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const series = seriesOf(periods);
  const stacks = stacksOf(periods, series, granularity);
  const sums = stacks.map(({ costs }) => [...costs.values()].reduce((sum, cost) => sum + cost, 0));
  const ticks = ticksFor(Math.max(0, ...sums), 4);
  const top = ticks.at(-1) || 1;
  const slot = stacks.length > 0 ? (width - LEFT) / stacks.length : 0;
  const every = Math.max(1, Math.ceil(LABEL_WIDTH / slot));
  return (
    <>
      <div className="chart" ref={frame}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} role="img" aria-label={`Cost by project and ${granularity}`}>
            {ticks.map((tick) => (
              <g key={tick} transform={`translate(0 ${TOP + PLOT * (1 - tick / top)})`}>
                <line className="chart-grid" x1={LEFT} x2={width} />
                <text className="chart-label" x={LEFT - 8} dy="0.32em" textAnchor="end">
                  {formatRoundCost(tick)}
                </text>
              </g>
            ))}
            {stacks.map((stack, index) => (
              <g key={stack.period} transform={`translate(${LEFT + slot * index} 0)`}>
                <Bar stack={stack} series={series} slot={slot} top={top} />
                {(stacks.length - 1 - index) % every === 0 && slot * (index + 0.5) >= LABEL_WIDTH / 4 && (
                  <text
                    className="chart-label"
                    x={index === stacks.length - 1 && slot < LABEL_WIDTH ? slot : slot / 2}
                    y={HEIGHT - 5}
                    textAnchor={index === stacks.length - 1 && slot < LABEL_WIDTH ? "end" : "middle"}
                  >
                    {DATE.format(new Date(stack.period))}
                  </text>
                )}
              </g>
            ))}
          </svg>
        )}
      </div>
      <ul className="chart-legend">
        {series.map((each) => (
          <li key={keyOf(each)}>
            <span className={`legend-mark series-${each.colour}`} />
            {each.path ? <Link href={projectPage(each.path)}>{each.name}</Link> : each.name}
          </li>
        ))}
      </ul>
    </>
  );
}

interface BarProps {
  stack: Stack;
  series: Series[];
  slot: number;
  top: number;
}

function Bar({ stack, series, slot, top }: BarProps) {
  const thickness = Math.max(1, Math.min(slot * 0.72, 36));
  let below = 0;
  return (
    <g>
      {series.map((each) => {
        const cost = stack.costs.get(keyOf(each)) ?? 0;
        if (cost <= 0) return null;
        const height = PLOT * (cost / top);
        below += height;
        return (
          <rect
            key={keyOf(each)}
            className={`series-${each.colour}`}
            x={(slot - thickness) / 2}
            y={TOP + PLOT - below}
            width={thickness}
            height={height}
          >
            <title>{`${DATE.format(new Date(stack.period))}, ${each.name}: ${formatCost(cost)}`}</title>
          </rect>
        );
      })}
    </g>
  );
}

function projectPage(path: string): string {
  return `/?project=${encodeURIComponent(path)}`;
}

export function ProjectTable({ periods }: { periods: ProjectPeriod[] }) {
  return (
    <FiguresTable
      columns={["Period and project", "Sessions", "Model calls", "Cost"]}
      rows={periods.toReversed().map((each) => ({
        key: `${each.period} ${each.project}`,
        cells: [
          <PeriodLink key="name" each={each} />,
          formatCount(each.sessions),
          formatCount(each.calls),
          formatTotalCost(each.cost, each.unpriced_calls),
        ],
      }))}
    />
  );
}

function PeriodLink({ each }: { each: ProjectPeriod }) {
  const label = `${each.period} ${each.label ?? each.project ?? UNKNOWN}`;
  return each.project ? <Link href={projectPage(each.project)}>{label}</Link> : <span>{label}</span>;
}

function useWidth(frame: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!frame.current) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, [frame]);
  return width;
}
