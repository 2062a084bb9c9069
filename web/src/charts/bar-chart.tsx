/**
 * Stacked bars over periods. Each piece of a bar leads to its sessions. It is a picture for the eye and the pointer: the
 * table beside it has the same figures and links for everybody else.
 */

import { AxisBottom, AxisLeft } from "@visx/axis";
import { GridRows } from "@visx/grid";
import { ParentSize } from "@visx/responsive";
import { scaleBand, scaleLinear } from "@visx/scale";
import { BarStack } from "@visx/shape";
import { Link } from "wouter";
import type { Chart, Series } from "./series";
import "./charts.css";

const HEIGHT = 220;
const MARGIN = { left: 56, right: 12, top: 8, bottom: 24 };
const PLOT = HEIGHT - MARGIN.top - MARGIN.bottom;
/** Of a letter of a label, in pixels, and of what is left free beside a label. */
const LETTER = 6.3;
const LABEL_GAP = 26;
const WIDEST_BAR = 36;
const TICKS = 4;

export function BarChart({ title, chart }: { title: string; chart: Chart }) {
  return (
    <figure className="chart-figure" aria-label={title}>
      <p className="visually-hidden">A chart. The table has the same figures.</p>
      <div className="chart">
        <ParentSize debounceTime={0}>
          {({ width }) => width > 0 && <Bars width={width} chart={chart} />}
        </ParentSize>
      </div>
      {chart.series.length > 1 && <Legend series={chart.series} />}
    </figure>
  );
}

function Bars({ width, chart }: { width: number; chart: Chart }) {
  const { periods, series, format } = chart;
  const names = new Map(periods.map((period) => [period.name, period]));
  const label = (name: string) => names.get(name)?.label ?? name;
  const widest = LETTER * Math.max(0, ...periods.map(({ name }) => label(name).length));
  // The last bar has its label, half of which may be behind the bar.
  const plot = width - MARGIN.left - Math.max(MARGIN.right, widest / 2);
  const sums = periods.map(({ values }) => series.reduce((sum, { key }) => sum + (values.get(key) ?? 0), 0));
  const y = scaleLinear({ domain: [0, Math.max(...sums, 0) || 1], range: [PLOT, 0], nice: TICKS });
  const x = scaleBand({ domain: periods.map(({ name }) => name), range: [0, plot], padding: 0.28 });
  return (
    <svg width={width} height={HEIGHT} aria-hidden="true">
      <g transform={`translate(${MARGIN.left} ${MARGIN.top})`}>
        <GridRows scale={y} width={plot} numTicks={TICKS} className="chart-grid" />
        <BarStack
          data={periods}
          keys={series.map(({ key }) => key)}
          value={({ values }, key) => values.get(key) ?? 0}
          x={({ name }) => name}
          xScale={x}
          yScale={y}
          color={(key) => key}
        >
          {(stacks) =>
            stacks.map((stack) => {
              const one = series[stack.index];
              if (!one) return null;
              return stack.bars.map((bar) => {
                const period = periods[bar.index];
                const value = period?.values.get(one.key);
                if (!period || !value) return null;
                const thickness = Math.max(1, Math.min(bar.width, WIDEST_BAR));
                return (
                  <Piece key={period.name} href={one.hrefAt?.(period.name) ?? null}>
                    <rect
                      className={`chart-bar series-${one.colour}`}
                      x={bar.x + (bar.width - thickness) / 2}
                      y={bar.y}
                      width={thickness}
                      height={Math.max(0, bar.height)}
                    >
                      <title>{titleOf(period.label, one.name, format(value))}</title>
                    </rect>
                  </Piece>
                );
              });
            })
          }
        </BarStack>
        <AxisLeft
          scale={y}
          numTicks={TICKS}
          hideAxisLine
          hideTicks
          tickFormat={(tick) => chart.formatTick(Number(tick))}
          tickClassName="chart-label"
          tickLabelProps={{ textAnchor: "end", dx: -4, dy: "0.32em" }}
        />
        <AxisBottom
          scale={x}
          top={PLOT}
          hideAxisLine
          hideTicks
          tickValues={shownLabels(
            periods.map(({ name }) => name),
            plot,
            widest + LABEL_GAP,
          )}
          tickFormat={(name) => label(String(name))}
          tickClassName="chart-label"
          tickLabelProps={{ textAnchor: "middle" }}
        />
      </g>
    </svg>
  );
}

/** "12 Nov, shop: $3.20"; a chart of one series does not name it. */
function titleOf(period: string, series: string, value: string): string {
  return `${[period, series].filter(Boolean).join(", ")}: ${value}`;
}

/** The names that have room, with the last one always among them. */
export function shownLabels(names: string[], width: number, each: number): string[] {
  const every = Math.max(1, Math.ceil((names.length * each) / Math.max(1, width)));
  return names.filter((_, index) => (names.length - 1 - index) % every === 0);
}

/** Not reached by the tab key: a year of bars would be hundreds of stops, and the table has the same links. */
function Piece({ href, children }: { href: string | null; children: React.ReactNode }) {
  if (href === null) return children;
  // A place of the page that is open: only the browser's own links tell it so.
  if (href.startsWith("#"))
    return (
      <a href={href} tabIndex={-1}>
        {children}
      </a>
    );
  return (
    <Link href={href} tabIndex={-1}>
      {children}
    </Link>
  );
}

function Legend({ series }: { series: Series[] }) {
  return (
    <ul className="chart-legend">
      {series.map(({ key, name, colour, href }) => (
        <li key={key}>
          <span className={`legend-mark series-${colour}`} />
          {href ? <Link href={href}>{name}</Link> : name}
        </li>
      ))}
    </ul>
  );
}
