/** A cell an hour of the week. It is a picture for the eye; the table beside it has the same figures in words. */

import { AxisLeft, AxisTop } from "@visx/axis";
import { scaleBand, scaleSqrt } from "@visx/scale";
import { Link } from "wouter";
import type { ActivityHour } from "@/api/types";
import { FiguresTable } from "@/charts/figures-table";
import { formatCount, plural } from "@/format/numbers";
import { WEEKDAYS as DAYS, hourKey, hourLabel } from "@/sessions/hour-of-week";
import { SessionsLink, useSessionsPage } from "./links";
import "@/charts/charts.css";

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
  const sessionsPage = useSessionsPage();
  return (
    <figure className="insight-picture" aria-label="Activity by day of the week and hour" tabIndex={0}>
      <p className="visually-hidden">A picture. The table has the same figures and links.</p>
      <svg viewBox={`0 0 ${LEFT + HOURS.length * CELL} ${TOP + DAYS.length * CELL}`} aria-hidden="true">
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
              const cell = { x: across(hour), y: down(day), rx: 3 };
              const size = { width: across.bandwidth(), height: down.bandwidth() };
              const key = hourKey(index + 1, hour);
              if (prompts + calls === 0)
                return <rect key={key} className="activity-empty" {...cell} {...size} />;
              return (
                <Link key={key} href={sessionsPage({ hour: key })} tabIndex={-1}>
                  <rect className="activity-cell" {...cell} {...size} fillOpacity={strength(prompts + calls)}>
                    <title>{`${hourLabel(key)}: ${plural(prompts, "prompt")}, ${plural(calls, "model call")}`}</title>
                  </rect>
                </Link>
              );
            }),
          )}
        </g>
      </svg>
    </figure>
  );
}

export function ActivityTable({ hours }: { hours: ActivityHour[] }) {
  return (
    <FiguresTable
      columns={["Hour", "Prompts", "Model calls"]}
      rows={hours.map((each) => ({
        key: `${each.weekday} ${each.hour}`,
        cells: [
          <SessionsLink key="hour" to={{ hour: hourKey(each.weekday, each.hour) }}>
            {hourLabel(hourKey(each.weekday, each.hour))}
          </SessionsLink>,
          formatCount(each.prompts),
          formatCount(each.calls),
        ],
      }))}
    />
  );
}
