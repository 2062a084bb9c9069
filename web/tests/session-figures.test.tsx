// @vitest-environment happy-dom

import { render } from "@testing-library/react";
import { expect, it } from "vitest";
import { CostBesides, Duration } from "@/sessions/session-figures";
import { session } from "./samples";

const AT = "2026-11-26T11:43:55Z";

it.each([
  ["", { created_at: AT, updated_at: AT }],
  ["4.0 s", { created_at: AT, updated_at: "2026-11-26T11:43:59Z" }],
  ["", {}],
])("says how long a session took where its log has two times: %s", (shown, times) => {
  expect(render(<Duration session={session(times)} />).container.textContent).toBe(shown);
});

it.each([
  ["estimated", " (≈ $0.09 with subagents)"],
  ["exact", " ($0.09 with subagents)"],
] as const)(
  "says what a session and its subagents cost no more exactly than its own cost: %s",
  (exactness, shown) => {
    const item = session({
      usage: { calls: 1, covered_calls: 0, unknown_calls: 0, usage: { exactness } },
      cost_with_subagents: { amount: "0.09" },
      unpriced_with_subagents: 0,
    });
    expect(render(<CostBesides session={item} />).container.textContent).toBe(shown);
  },
);
