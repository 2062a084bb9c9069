/** A cell an hour of the week. It is a picture for the eye; the table beside it has the same figures in words. */

import { AxisLeft, AxisTop } from "@visx/axis";
import { scaleBand, scaleSqrt } from "@visx/scale";
import type { ActivityHour } from "@/api/types";
import { formatCount, plural } from "@/format/numbers";
import { FiguresTable } from "./figures-table";
import "@/charts/charts.css";

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const HOURS = Array.from({ length: 24 }, (_, hour) => hour);

const CELL = 24;
const LEFT = 40;
const TOP = 22;
const LABELS = { hideAxisLine: true, hideTicks: true, tickLength: 2, tickClassName: "chart-label" };

const across = scaleBand({ domain: HOURS, range: [0, HOURS.length * CELL], padding: 0.08 });
const down = scaleBand({ domain: DAYS, range: [0, DAYS.length * CELL], padding: 0.08 });

export function ActivityGrid({ hours }: { hours: ActivityHour[] }) {
  const known = new Map(hours.map((each) => [`${each.weekday} ${each.hour}`, each]));
  // The square root keeps quiet hours visible beside the busiest one.
  const strength = scaleSqrt({
    domain: [0, Math.max(1, ...hours.map(({ calls, prompts }) => calls + prompts))],
    range: [0.12, 1],
  });
  return (
    <div className="insight-picture" tabIndex={0}>
      <svg
        viewBox={`0 0 ${LEFT + HOURS.length * CELL} ${TOP + DAYS.length * CELL}`}
        role="img"
        aria-label="Activity by day of the week and hour"
      >
        <g transform={`translate(${LEFT} ${TOP})`}>
          <AxisTop {...LABELS} scale={across} tickValues={HOURS.filter((hour) => hour % 3 === 0)} />
          <AxisLeft
            {...LABELS}
            scale={down}
            tickFormat={(day) => day.slice(0, 3)}
            tickLabelProps={{ textAnchor: "end", dx: -4, dy: "0.32em" }}
          />
          {DAYS.map((day, index) =>
            HOURS.map((hour) => {
              const found = known.get(`${index + 1} ${hour}`);
              const [prompts, calls] = [found?.prompts ?? 0, found?.calls ?? 0];
              return (
                <rect
                  key={`${day} ${hour}`}
                  className={prompts + calls > 0 ? "activity-cell" : "activity-empty"}
                  x={across(hour)}
                  y={down(day)}
                  width={across.bandwidth()}
                  height={down.bandwidth()}
                  rx={3}
                  fillOpacity={prompts + calls > 0 ? strength(prompts + calls) : 1}
                >
                  <title>{`${day} ${clock(hour)}: ${plural(prompts, "prompt")}, ${plural(calls, "model call")}`}</title>
                </rect>
              );
            }),
          )}
        </g>
      </svg>
    </div>
  );
}

function clock(hour: number): string {
  return `${String(hour).padStart(2, "0")}:00`;
}

export function ActivityTable({ hours }: { hours: ActivityHour[] }) {
  return (
    <FiguresTable
      columns={["Hour", "Prompts", "Model calls"]}
      rows={hours.map((each) => ({
        key: `${each.weekday} ${each.hour}`,
        cells: [
          `${DAYS[each.weekday - 1]} ${clock(each.hour)}`,
          formatCount(each.prompts),
          formatCount(each.calls),
        ],
      }))}
    />
  );
}
