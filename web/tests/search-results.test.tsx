// @vitest-environment happy-dom

/** Where what a search found leads to. */

import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { SearchGroup as Group, SearchHit } from "@/api/types";
import { SearchGroup } from "@/search/search-results";
import { renderAt } from "./render";

const HIT: SearchHit = {
  message_id: "m7",
  position: 7,
  part: 2,
  field: "text",
  role: "user",
  tool_name: null,
  created_at: null,
  snippet: [{ text: "tax", marked: true }],
  also_in: [],
};

const GROUP: Group = {
  session: {
    id: "claude-code:a",
    agent: "claude-code",
    title: "Add the tax",
    project: "/work/folder",
    project_name: "Shop of Ada",
    user: null,
  },
  hits: [HIT],
  names: [{ field: "title", text: [{ text: "Add the tax", marked: true }] }],
  matches: null,
  matches_is_exact: true,
};

function addressOfTitle(group: Group): string | null {
  const shown = renderAt("/search", <SearchGroup group={group} query="tax" now={new Date()} />);
  const address = screen.getByRole("link", { name: "Add the tax" }).getAttribute("href");
  shown.unmount();
  return address;
}

it("leads from the title to the hit, as from its excerpt, and to the session if only its names have the words", () => {
  const excerpt = renderAt("/search", <SearchGroup group={GROUP} query="tax" now={new Date()} />);
  const address = excerpt.container.querySelector("a.hit")?.getAttribute("href");
  excerpt.unmount();
  expect(addressOfTitle(GROUP)).toBe(address);
  expect(address).toContain("find=tax");
  expect(addressOfTitle({ ...GROUP, hits: [] })).toBe("/sessions/claude-code:a");
});

it("shows the name that the user gave the project, not its folder", () => {
  const { container } = renderAt("/search", <SearchGroup group={GROUP} query="tax" now={new Date()} />);
  expect(container.querySelector(".hit-places")?.textContent).toContain("Shop of Ada · ");
});
