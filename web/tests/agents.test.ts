import { describe, expect, it } from "vitest";
import type { AgentItem } from "@/api/types";
import { lookOf } from "@/sessions/use-agents";

const KNOWN: AgentItem = {
  agent: "my-agent",
  display_name: "My Agent",
  colour: { light: "#112233", dark: "#ddeeff" },
  sessions: 1,
  subagents: 0,
  sources: 1,
  updated_at: null,
};

describe("how an agent is shown", () => {
  it("is what the server says", () => {
    expect(lookOf([KNOWN], "my-agent")).toEqual({ name: "My Agent", colour: KNOWN.colour });
  });

  it("is its own name and no colour where the server does not describe it", () => {
    expect(lookOf([KNOWN], "another")).toEqual({ name: "another", colour: null });
    expect(lookOf([], "my-agent")).toEqual({ name: "my-agent", colour: null });
  });
});
