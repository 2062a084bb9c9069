// @vitest-environment happy-dom

import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { download, fileNameOf, openText } from "@/api/files";
import { FileView } from "@/session/message/part-view";
import { renderAt } from "./render";

const made: Blob[] = [];
const revoked: string[] = [];

beforeEach(() => {
  made.length = revoked.length = 0;
  vi.stubGlobal("fetch", async (address: string) =>
    address.includes("missing")
      ? Response.json({ error: { message: "not there" } }, { status: 404 })
      : new Response("<script>", {
          headers: { "content-type": "text/html", "content-disposition": 'attachment; filename="a.html"' },
        }),
  );
  vi.spyOn(URL, "createObjectURL").mockImplementation((blob) => `blob:${made.push(blob as Blob)}`);
  vi.spyOn(URL, "revokeObjectURL").mockImplementation((url) => void revoked.push(url));
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("bytes of a log", () => {
  it("are saved under the server's name, never opened as what they say they are", async () => {
    vi.useFakeTimers();
    const clicked: HTMLAnchorElement[] = [];
    vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
      clicked.push(this);
    });
    await download("/api/blobs/1");
    expect(clicked.map(({ href, download }) => [href, download])).toEqual([["blob:1", "a.html"]]);
    expect(made[0]?.type).toBe("application/octet-stream");
    expect(revoked).toEqual([]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(revoked).toEqual(["blob:1"]);
  });

  it("are shown as plain text in a window that is opened at once", async () => {
    const replace = vi.fn();
    const close = vi.fn();
    vi.stubGlobal("open", () => ({ location: { replace }, close }));
    await openText("/api/blobs/1?as=text");
    expect(replace).toHaveBeenCalledWith("blob:1");
    expect(made[0]?.type).toBe("text/plain; charset=utf-8");
    await expect(openText("/api/blobs/missing")).rejects.toThrow("not there");
    expect(close).toHaveBeenCalledOnce();
  });

  it("have the name that the header gives", () => {
    expect(fileNameOf('attachment; filename="a b.md"')).toBe("a b.md");
    expect(fileNameOf("attachment; filename=\"x.md\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.md")).toBe("Grüße.md");
    expect(fileNameOf("attachment")).toBe(null);
    expect(fileNameOf(null)).toBe(null);
  });
});

describe("a picture", () => {
  const blob = { sha256: "a".repeat(64), size: 10, media_type: "image/png" };

  it("is shown from an address within the page, which ends with it", async () => {
    const { unmount } = renderAt("/", <FileView part={{ type: "file", media_type: "image/png", blob }} />);
    await waitFor(() => expect(screen.getAllByRole("img")[0]?.getAttribute("src")).toBe("blob:1"));
    expect(revoked).toEqual([]);
    unmount();
    expect(revoked).toEqual(["blob:1"]);
  });

  it("that is something else is saved, and says why it cannot be", async () => {
    const missing = { ...blob, sha256: "missing" };
    renderAt("/", <FileView part={{ type: "file", media_type: "application/pdf", blob: missing }} />);
    await userEvent.click(screen.getByRole("button", { name: /application\/pdf/ }));
    expect((await screen.findByRole("alert")).textContent).toContain("not there");
  });
});
