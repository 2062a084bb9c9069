/** A bar a day. The same figures stand in the table, so the picture itself is one image for a screen reader. */

import { useEffect, useRef, useState } from "react";
import type { UsageRow } from "@/api/types";
import type { Measure } from "./measures";
import { type Day, fillDays, ticksFor } from "./measures";

const HEIGHT = 220;
const LEFT = 52;
const BOTTOM = 22;
const TOP = 8;
const PLOT = HEIGHT - TOP - BOTTOM;
const LABEL_WIDTH = 64;

const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export function DayChart({ rows, measure }: { rows: UsageRow[]; measure: Measure }) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const days = fillDays(rows);
  const largest = Math.max(0, ...days.map((day) => amountOf(day, measure) ?? 0));
  const ticks = ticksFor(largest, 4);
  const top = ticks.at(-1) || 1;
  const slot = days.length > 0 ? (width - LEFT) / days.length : 0;
  const every = Math.max(1, Math.ceil(LABEL_WIDTH / slot));
  // The last label keeps to the edge where its bar is too narrow for it.
  const isCut = (index: number) => index === days.length - 1 && slot < LABEL_WIDTH;
  return (
    <div className="chart" ref={frame}>
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={`${measure.label} by day`}>
          {ticks.map((tick) => (
            <g key={tick} transform={`translate(0 ${TOP + PLOT * (1 - tick / top)})`}>
              <line className="chart-grid" x1={LEFT} x2={width} />
              <text className="chart-label" x={LEFT - 8} dy="0.32em" textAnchor="end">
                {measure.formatTick(tick)}
              </text>
            </g>
          ))}
          {days.map((day, index) => (
            <g key={day.day} transform={`translate(${LEFT + slot * index} 0)`}>
              <Bar day={day} measure={measure} slot={slot} top={top} />
              {(days.length - 1 - index) % every === 0 && slot * (index + 0.5) >= LABEL_WIDTH / 4 && (
                <text
                  className="chart-label"
                  x={isCut(index) ? slot : slot / 2}
                  y={HEIGHT - 5}
                  textAnchor={isCut(index) ? "end" : "middle"}
                >
                  {DAY.format(new Date(day.day))}
                </text>
              )}
            </g>
          ))}
        </svg>
      )}
    </div>
  );
}

function Bar({ day, measure, slot, top }: { day: Day; measure: Measure; slot: number; top: number }) {
  const value = amountOf(day, measure);
  const height = PLOT * ((value ?? 0) / top);
  const thickness = Math.max(1, Math.min(slot * 0.72, 36));
  const figure = day.row ? (value === null ? "unknown" : measure.format(value)) : "nothing";
  return (
    <g className="chart-day">
      <rect className="chart-slot" width={slot} y={TOP} height={PLOT}>
        <title>{`${DAY.format(new Date(day.day))}: ${figure}`}</title>
      </rect>
      <rect
        className="chart-bar"
        x={(slot - thickness) / 2}
        y={TOP + PLOT - height}
        width={thickness}
        height={height}
        rx={Math.min(2, thickness / 3)}
      />
    </g>
  );
}

function amountOf(day: Day, measure: Measure): number | null {
  return day.row ? measure.of(day.row.totals) : null;
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
