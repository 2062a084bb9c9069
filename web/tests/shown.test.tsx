// @vitest-environment happy-dom

import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { Link } from "wouter";
import type { ToolCallPart } from "@/api/types";
import { CodeBlock } from "@/content/code-block";
import { Diff } from "@/content/diff";
import { Markdown } from "@/content/markdown";
import { Terminal } from "@/content/terminal";
import { ResumeMenu } from "@/session/page/continue-menu";
import { ToolCall } from "@/session/tool/tool-call";
import { useTitle } from "@/shell/title";
import { hides, reveal } from "@/shown/reveal";
import hidden from "../../tests/data/hidden_characters.json";
import { renderAt, renderInSession } from "./render";
import { message, placement, toolCall } from "./samples";

const EVIL = "a\x1b[2J\u202eb\u2066\u200b.py";
const SHOWN = "a⟨U+001B⟩[2J⟨U+202E⟩b⟨U+2066⟩⟨U+200B⟩.py";

/** What nobody sees, and what turns the direction of a line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
const REFUSED = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;

function* inRanges(ranges: number[][]): Generator<number> {
  for (const [first = 0, last = -1] of ranges) for (let code = first; code <= last; code++) yield code;
}

// The table is also that of `tests/test_plain_text.py`.
describe("a character that nobody sees", () => {
  it("is shown as a sign between letters, and no other character is", () => {
    const signs = new Set([...inRanges(hidden.controls), ...inRanges(hidden.unseen)]);
    const codes = [
      ...inRanges([
        [0, 0xd7ff],
        [0xe000, 0x1ffff],
        [0xe0000, 0xe1fff],
      ]),
    ];
    const sign = (code: number) => `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    const shown = (code: number) => (signs.has(code) ? sign(code) : String.fromCodePoint(code));
    const text = codes.map((code) => `a${String.fromCodePoint(code)}b`).join("");
    expect(reveal(text) === codes.map((code) => `a${shown(code)}b`).join("")).toBe(true);
  });

  it.each(hidden.shown)(
    "is shown as a sign without the neighbour that it needs: %s",
    (_, text = "", shown) => {
      expect(reveal(text)).toBe(shown);
      expect(hides(text)).toBe(true);
    },
  );

  it.each(hidden.kept)("stays where a script or an emoji is spelled with it: %j", (text) => {
    expect(reveal(text)).toBe(text);
    expect(hides(text)).toBe(false);
  });
});

describe("a text of a log", () => {
  it.each([
    ["a name", <b key="">{EVIL}</b>],
    ["a name in a sentence", <b key="">of {EVIL}</b>],
    [
      "a link of a library",
      <Link key="" href="/">
        {EVIL}
      </Link>,
    ],
    ["Markdown", <Markdown key="" text={EVIL} />],
    ["a heading", <Markdown key="" text={`# ${EVIL}`} />],
    ["a cell", <Markdown key="" text={`|${EVIL}|b|\n|-|-|\n|c|${EVIL}|`} />],
    ["code in Markdown", <Markdown key="" text={`\`${EVIL}\`\n\n\`\`\`\n${EVIL}\n\`\`\``} />],
    ["HTML in Markdown", <Markdown key="" text={`<b>${EVIL}</b>\n\n<p>${EVIL}</p>`} />],
    ["code", <CodeBlock key="" code={EVIL} />],
    ["an edit", <Diff key="" label="" lines={[{ kind: "added", text: EVIL }]} />],
  ])("is shown with signs: %s", (_, element) => {
    const { container } = render(element);
    expect(container.textContent).toContain(SHOWN);
    expect(container.textContent).not.toMatch(REFUSED);
  });

  it("is shown with signs where a character reference of Markdown hides them", () => {
    const { container } = render(<Markdown text="a&#x202e;b&#x1b;" />);
    expect(container.textContent).toBe("a⟨U+202E⟩b⟨U+001B⟩");
  });

  it("is shown with signs in what a command printed, which obeys no sequence", () => {
    const { container } = render(<Terminal text={EVIL} />);
    expect(container.textContent).toBe("a⟨U+202E⟩b⟨U+2066⟩⟨U+200B⟩.py");
  });

  it("is shown with signs where it is a title, and stays as it is in what is typed or sent", () => {
    render(<input title={EVIL} aria-label={EVIL} defaultValue={EVIL} />);
    const field = screen.getByRole<HTMLInputElement>("textbox", { name: SHOWN });
    expect([field.title, field.value]).toEqual([SHOWN, EVIL]);
  });

  it("is shown with signs in the title of the browser's tab", () => {
    function Page() {
      useTitle(EVIL);
      return null;
    }
    render(<Page />);
    expect(document.title).toBe(`${SHOWN} · turnlog`);
  });

  it("is shown with signs in a tool call: its name, its arguments, its output", async () => {
    const part: ToolCallPart = toolCall({
      tool_name: `Tool${EVIL}`,
      kind: "other",
      input: { [EVIL]: EVIL, file_path: EVIL },
      state: "output-available",
      results: [{ id: "r", content: [{ type: "text", text: EVIL }] }],
    });
    const { container } = renderInSession(
      <ToolCall part={part} message={message({ role: "assistant" })} placement={placement()} index={0} />,
    );
    await userEvent.click(screen.getAllByRole("button", { expanded: false })[0] as HTMLElement);
    expect(container.textContent).toContain(`Tool${SHOWN}`);
    expect(container.innerHTML).not.toMatch(REFUSED);
  });

  it("is shown with signs in the command to copy", () => {
    const resume = { folder: `/tmp/${EVIL}\n`, command: ["claude", "--resume", "a"] };
    const { container } = renderAt("/", <ResumeMenu session={{ id: "a", agent: "b", resume } as never} />);
    expect(container.querySelector("code")?.textContent).toBe(
      "cd $'/tmp/a\\033[2J\\342\\200\\256b\\342\\201\\246\\342\\200\\213.py\\012' && claude --resume a",
    );
  });
});
