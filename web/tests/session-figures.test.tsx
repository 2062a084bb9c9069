// @vitest-environment happy-dom

import { render } from "@testing-library/react";
import { expect, it } from "vitest";
import { Duration } from "@/sessions/session-figures";
import { session } from "./samples";

const AT = "2026-11-26T11:43:55Z";

it.each([
  ["", { created_at: AT, updated_at: AT }],
  ["4.0 s", { created_at: AT, updated_at: "2026-11-26T11:43:59Z" }],
  ["", {}],
])("says how long a session took where its log has two times: %s", (shown, times) => {
  expect(render(<Duration session={session(times)} />).container.textContent).toBe(shown);
});
