// @vitest-environment happy-dom

import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeAll, describe, expect, it } from "vitest";
import ProjectsPage from "@/projects/projects-page";
import { answerWith, renderAt } from "./render";

const SHOP = {
  path: "/w/shop",
  name: "shop",
  sessions: 2,
  updated_at: "2026-11-02T10:00:00Z",
  merged: ["/old/shop"],
};
const TILL = { path: "/w/till", name: "till", sessions: 1, updated_at: null, merged: [] };
const ANSWERS = {
  "GET /api/projects": { json: { items: [SHOP, TILL] } },
  "PATCH /api/projects": { json: SHOP },
};

beforeAll(() => {
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) {
    this.open = true;
  };
});

describe("the list of projects", () => {
  it("leads to the sessions of each", async () => {
    answerWith(ANSWERS);
    renderAt("/projects", <ProjectsPage />);
    const link = await screen.findByRole("link", { name: /till \/w\/till 1 session time unknown/ });
    expect(link.getAttribute("href")).toBe("/?project=%2Fw%2Ftill");
  });

  it("renames one, and merges it into another", async () => {
    const requests = answerWith(ANSWERS);
    renderAt("/projects", <ProjectsPage />);
    await userEvent.click(await screen.findByRole("button", { name: "Rename or merge till" }));
    await userEvent.clear(screen.getByLabelText("Name"));
    await userEvent.type(screen.getByLabelText("Name"), "Cash desk");
    await userEvent.selectOptions(screen.getByLabelText("Merge into"), "/w/shop");
    await userEvent.click(screen.getByRole("button", { name: "Save" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(requests.bodies).toEqual([{ path: "/w/till", name: "Cash desk", merged_into: "/w/shop" }]);
  });

  it("splits what was merged", async () => {
    const requests = answerWith(ANSWERS);
    renderAt("/projects", <ProjectsPage />);
    await userEvent.click(await screen.findByRole("button", { name: "Split" }));
    await waitFor(() => expect(requests.bodies).toEqual([{ path: "/old/shop", merged_into: null }]));
  });

  it("says why a change was refused", async () => {
    answerWith({ ...ANSWERS, "PATCH /api/projects": { status: 403, message: "for reading only" } });
    renderAt("/projects", <ProjectsPage />);
    await userEvent.click(await screen.findByRole("button", { name: "Rename or merge till" }));
    await userEvent.click(screen.getByRole("button", { name: "Save" }));
    expect((await screen.findByRole("alert")).textContent).toBe("Not saved: for reading only");
  });
});
