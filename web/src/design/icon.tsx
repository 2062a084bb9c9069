/** Line icons on a 16-unit grid. They only repeat what text or a label already says. */

const PATHS = {
  agent: "M3 5.5h10v7H3zM8 5.5V3M6 8.5v1M10 8.5v1",
  arrow: "M6 3.5 10.5 8 6 12.5",
  back: "M9.5 3.5 5 8l4.5 4.5",
  branch: "M5 3v10M5 9c4 0 6-1.5 6-5M11 4v.01",
  box: "M2.500 4h11v3h-11zM3.500 7v6h9V7M6.500 9.500h3",
  chart: "M3 13V8M7 13V3M11 13V6",
  check: "m3.5 8.5 3 3 6-7",
  checked: "M8 2.5a5.500 5.500 0 1 0 0 11 5.500 5.500 0 0 0 0-11ZM5.500 8.300l1.800 1.800L10.700 6.500",
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM8 5v3l2 1.5",
  compact: "M3 8h10M8 2v3.5M6 4l2 2 2-2M8 14v-3.5M6 12l2-2 2 2",
  copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
  cross: "m4 4 8 8M12 4l-8 8",
  doing:
    "M8 2.5a5.500 5.500 0 1 0 0 11 5.500 5.500 0 0 0 0-11ZM8 5.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5Z",
  document: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  down: "M3.5 6 8 10.5 12.5 6",
  edit: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3zM9 4.7 11.3 7",
  expand: "M5 6.5 8 3.5l3 3M5 9.5l3 3 3-3",
  fetch: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM2.5 8h11M8 2.5c-4 3.5-4 7.5 0 11 4-3.5 4-7.5 0-11Z",
  filter: "M2.5 4.5h11M4.5 8h7M6.5 11.5h3",
  flag: "M4 14V2.5M4 3h8l-1.5 3L12 9H4",
  folder: "M2.500 4h4l1.500 1.500h5.500v7h-11z",
  hand: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM4.2 4.2l7.6 7.6",
  help: "M6 6a2 2 0 1 1 3 1.8c-.7.4-1 .8-1 1.7M8 12v.01",
  image: "M2.5 3.5h11v9h-11zM2.5 11l3.5-3.5 3 3 2-2 2.5 2.5M10.5 6.2v.01",
  info: "M8 7.5V12M8 4.5v.01",
  link: "M7 9.5 9.5 7M6.5 5.5 8 4a2.8 2.8 0 0 1 4 4l-1.5 1.5M9.5 10.5 8 12a2.8 2.8 0 0 1-4-4l1.5-1.5",
  list: "M3 4.5h10M3 8h10M3 11.5h6",
  mode: "M3 5h7.5L8.5 3M13 11H5.5l2 2",
  moon: "M12.5 9.5A5 5 0 0 1 6.5 3a5.2 5.2 0 1 0 6 6.5Z",
  move: "M3 8h9.5M9.5 5l3 3-3 3",
  open: "M8 2.5a5.500 5.500 0 1 0 0 11 5.500 5.500 0 0 0 0-11Z",
  pause: "M5.500 4v8M10.500 4v8",
  pin: "M5.500 2.500h5M6.500 2.500v4L4.500 9h7l-2-2.500v-4M8 9v4.500",
  play: "M5 3.500v9l7-4.500z",
  question: "M3 3.5h10v7H8L5 13v-2.5H3z",
  read: "M2.5 3.5c2-.8 4-.5 5.5.7 1.5-1.2 3.5-1.5 5.5-.7v8.5c-2-.8-4-.5-5.5.7-1.5-1.2-3.5-1.5-5.5-.7zM8 4.2v8.5",
  record: "M3 5.5 8 3l5 2.5L8 8zM3 8l5 2.5L13 8M3 10.5 8 13l5-2.5",
  rewind: "M5.5 3 3 5.5 5.5 8M3 5.5h6.5a3.5 3.5 0 0 1 0 7H6",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM10 10l3.5 3.5",
  share: "M8 9.5v-7M5.500 5 8 2.500 10.500 5M3.500 8v5.500h9V8",
  star: "m8 2.500 1.700 3.500 3.800.5-2.800 2.700.7 3.800L8 11.200 4.600 13l.7-3.800L2.500 6.500l3.800-.5z",
  stop: "M4.5 4.5h7v7h-7z",
  tag: "M2.500 2.500h5.500l5.500 5.500-5.500 5.500-5.500-5.500zM5.500 5.500v.01",
  sun: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5ZM8 2v1M8 13v1M2 8h1M13 8h1M3.8 3.800l.7.7M11.5 11.5l.7.7M3.8 12.200l.7-.7M11.5 4.5l.7-.7",
  system: "M8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4ZM8 2.5V4M8 12v1.5M2.5 8H4M12 8h1.5",
  terminal: "m3.5 4.5 3.5 3.5-3.5 3.5M8.5 11.5h4",
  think:
    "M8 2.5c-2.5 0-4.2 1.700-4.2 4 0 1.5.8 2.5 1.700 3.300V11h5V9.800c.9-.8 1.700-1.8 1.700-3.300 0-2.300-1.700-4-4.2-4ZM6 13.5h4",
  tool: "M10 3a3 3 0 0 0-2.8 4.200L3 11.500 4.500 13l4.300-4.200A3 3 0 0 0 12.8 5l-1.8 1.8-1.8-1.800z",
  trash: "M3.5 4.5h9M6.5 4.5V3h3v1.5M5 4.5l.5 8.5h5l.5-8.5",
  up: "M3.5 10 8 5.500 12.5 10",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      className="icon"
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth={1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
