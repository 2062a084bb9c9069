/** Moments and spans as people read them, in the reader's own time zone. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const EXACT = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECOND = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY_MONTH = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const DAY_MONTH_YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const LONG_DAY = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });
const LONG_DAY_YEAR = new Intl.DateTimeFormat("en-GB", {
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
});

/** "Friday, 21 November 2026 at 09:41:07 UTC" */
export function formatExact(moment: string): string {
  return EXACT.format(new Date(moment));
}

/** "09:41" */
export function formatClock(moment: string): string {
  return CLOCK.format(new Date(moment));
}

/** "09:41:07", of milliseconds since 1970 */
export function formatSecond(at: number): string {
  return SECOND.format(at);
}

/** "just now" · "12 min ago" · "5 h ago" · "3 d ago" · "21 Oct" · "21 Oct 2025" */
export function formatRelative(moment: string, now: Date): string {
  const then = new Date(moment);
  const age = now.getTime() - then.getTime();
  if (age < MINUTE) return "just now";
  if (age < HOUR) return `${Math.floor(age / MINUTE)} min ago`;
  if (age < DAY) return `${Math.floor(age / HOUR)} h ago`;
  if (age < 7 * DAY) return `${Math.floor(age / DAY)} d ago`;
  return formatDate(then, now);
}

/** "21 Oct", with the year where it is not this one. */
export function formatDate(day: Date, now: Date): string {
  return (day.getFullYear() === now.getFullYear() ? DAY_MONTH : DAY_MONTH_YEAR).format(day);
}

/** The same day as the calendar of a zone such as "UTC" has it. */
export function formatDateIn(timeZone: string, day: Date, now: Date): string {
  const yearOf = new Intl.DateTimeFormat("en-GB", { year: "numeric", timeZone });
  const year = yearOf.format(day) === yearOf.format(now) ? {} : ({ year: "numeric" } as const);
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone, ...year }).format(day);
}

/** "Today" · "Yesterday" · "Tuesday 18 November" · "Monday 1 December 2025" */
export function formatDay(moment: string, now: Date): string {
  const day = new Date(moment);
  const distance = Math.round((startOfDay(now).getTime() - startOfDay(day).getTime()) / DAY);
  if (distance === 0) return "Today";
  if (distance === 1) return "Yesterday";
  return (day.getFullYear() === now.getFullYear() ? LONG_DAY : LONG_DAY_YEAR).format(day).replace(",", "");
}

/** "2026-11-21" of the reader's own day: what tells two days apart. */
export function dayKey(moment: string | Date): string {
  const day = new Date(moment);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** 85 ms · 4.2 s · 43 s · 1 min 5 s · 2 h 14 min · 3 d 4 h, as the command line writes them. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 9950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Milliseconds between two moments; null when one is missing or they are the wrong way round. */
export function spanOf(start: string | null | undefined, end: string | null | undefined): number | null {
  if (!start || !end) return null;
  const span = new Date(end).getTime() - new Date(start).getTime();
  return span >= 0 ? span : null;
}

function startOfDay(moment: Date): Date {
  return new Date(moment.getFullYear(), moment.getMonth(), moment.getDate());
}

/** The moment a day of the reader's calendar begins ("2026-11-21"), as the server takes it. */
export function startOf(day: string): string {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date).toISOString();
}

export function dayAfter(day: string): string {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return dayKey(new Date(year, month - 1, date + 1));
}
