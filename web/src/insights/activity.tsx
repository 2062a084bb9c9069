/** A cell an hour of the week. It is a picture for the eye; the table beside it has the same figures in words. */

import type { ActivityHour } from "@/api/types";
import { formatCount, plural } from "@/format/numbers";
import { FiguresTable } from "./figures-table";

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const HOURS = Array.from({ length: 24 }, (_, hour) => hour);

const CELL = 24;
const LEFT = 40;
const TOP = 18;
const GAP = 2;

export function ActivityGrid({ hours }: { hours: ActivityHour[] }) {
  const known = new Map(hours.map((each) => [`${each.weekday} ${each.hour}`, each]));
  const most = Math.max(1, ...hours.map(({ calls, prompts }) => calls + prompts));
  return (
    <div className="insight-picture" tabIndex={0}>
      <svg
        viewBox={`0 0 ${LEFT + 24 * CELL} ${TOP + 7 * CELL}`}
        role="img"
        aria-label="Activity by day of the week and hour"
      >
        {HOURS.filter((hour) => hour % 3 === 0).map((hour) => (
          <text className="chart-label" key={hour} x={LEFT + hour * CELL} y={TOP - 6}>
            {hour}
          </text>
        ))}
        {DAYS.map((day, index) => (
          <g key={day} transform={`translate(0 ${TOP + index * CELL})`}>
            <text className="chart-label" y={CELL / 2} dy="0.32em">
              {day.slice(0, 3)}
            </text>
            {HOURS.map((hour) => (
              <Cell key={hour} day={day} hour={hour} most={most} found={known.get(`${index + 1} ${hour}`)} />
            ))}
          </g>
        ))}
      </svg>
    </div>
  );
}

interface CellProps {
  day: string;
  hour: number;
  most: number;
  found: ActivityHour | undefined;
}

function Cell({ day, hour, most, found }: CellProps) {
  const [prompts, calls] = [found?.prompts ?? 0, found?.calls ?? 0];
  // The square root keeps quiet hours visible beside the busiest one.
  const share = Math.sqrt((prompts + calls) / most);
  const shape = { x: LEFT + hour * CELL, width: CELL - GAP, height: CELL - GAP, rx: 3 };
  return (
    <g>
      <rect {...shape} className="activity-empty">
        <title>{`${day} ${clock(hour)}: ${plural(prompts, "prompt")}, ${plural(calls, "model call")}`}</title>
      </rect>
      {share > 0 && <rect {...shape} className="activity-cell" fillOpacity={0.12 + 0.88 * share} />}
    </g>
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
