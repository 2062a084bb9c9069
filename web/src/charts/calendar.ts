/** The hours, days, weeks and months of a report: all of them from the first to the last, and what people call them. */

export type PeriodKind = "hour" | "day" | "week" | "month" | "block";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Bars that can still be told apart. Of more periods, only those that have something are shown. */
const MOST = 400;

const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const MONTH = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric", timeZone: "UTC" });

/** Every period from the first to the last, also those in which nothing happened. Names are ascending. */
export function everyPeriod(names: Iterable<string>, kind: PeriodKind): string[] {
  const known = [...new Set(names)].sort();
  const [first, last] = [known.at(0), known.at(-1)];
  // Hours have the offset of their zone in their names, which may change, and blocks begin at any hour.
  if (!first || !last || kind === "hour" || kind === "block") return known;
  const every: string[] = [];
  for (let name = first; name <= last && every.length <= MOST; name = next(name, kind)) every.push(name);
  return every.length > MOST ? known : every;
}

function next(name: string, kind: PeriodKind): string {
  const time = new Date(name);
  if (kind === "month") {
    time.setUTCMonth(time.getUTCMonth() + 1);
    return time.toISOString().slice(0, 7);
  }
  return new Date(time.getTime() + (kind === "week" ? 7 : 1) * DAY).toISOString().slice(0, 10);
}

/** 12 Nov · 12 Nov 14:00 · Nov 2026 */
export function periodLabel(name: string, kind: PeriodKind): string {
  if (kind === "month") return MONTH.format(new Date(name));
  const day = DATE.format(new Date(name.slice(0, 10)));
  return kind === "hour" || kind === "block" ? `${day} ${name.slice(11, 16)}` : day;
}

/** The first and the last day of a period, as the list of sessions takes them. */
export function daysOf(name: string, kind: PeriodKind): { since: string; until: string } {
  if (kind === "week") {
    const sunday = new Date(Date.parse(name) + 6 * DAY).toISOString().slice(0, 10);
    return { since: name, until: sunday };
  }
  if (kind === "month") {
    const [year, month] = name.split("-").map(Number);
    const last = new Date(Date.UTC(year ?? 0, month ?? 0, 0)).toISOString().slice(0, 10);
    return { since: `${name}-01`, until: last };
  }
  return { since: name.slice(0, 10), until: name.slice(0, 10) };
}
