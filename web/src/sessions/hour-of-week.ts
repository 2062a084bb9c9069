/** An hour of the week as the address and the server write it: `6-02` is Saturday from two. */

export const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** 1 is Monday. */
export function hourKey(weekday: number, hour: number): string {
  return `${weekday}-${String(hour).padStart(2, "0")}`;
}

/** "Saturday 02:00" */
export function hourLabel(key: string): string {
  const [weekday, hour] = key.split("-");
  return `${WEEKDAYS[Number(weekday) - 1] ?? "?"} ${hour}:00`;
}
