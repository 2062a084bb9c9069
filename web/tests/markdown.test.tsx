import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { decodeEntities, Markdown } from "@/content/markdown";

const html = (text: string, breaks = false) => renderToStaticMarkup(<Markdown text={text} breaks={breaks} />);

describe("what a log says never becomes more than text", () => {
  it("shows raw HTML as it was written", () => {
    const page = html("before <img src=x onerror=alert(1)> after\n\n<script>alert(1)</script>\n");
    expect(page).not.toMatch(/<(img|script)/);
    expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(page).toContain("&lt;img src=x onerror=alert(1)&gt;");
  });

  it.each(["javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "//evil.example"])(
    "makes no link to %s",
    (href) => expect(html(`[click](${href})`)).not.toContain("<a "),
  );

  it("asks no other host for an image", () => {
    const page = html("![a cat](https://example.com/cat.png)");
    expect(page).not.toContain("<img");
    expect(page).toContain("[image: a cat]");
  });

  it("opens links without telling where from", () => {
    expect(html("[site](https://example.com)")).toContain('rel="noopener noreferrer nofollow"');
  });
});

it("shows what is nested too deep, or is no prose, as it stands", () => {
  expect(html(`${">".repeat(20_000)} deep`)).toContain("deep</pre>");
  expect(html(`# ${"x".repeat(200_000)}`)).not.toContain("<h2");
});

it("takes the direction of what is said", () => {
  expect(html("مرحبا")).toContain('dir="auto"');
});

describe("Markdown as models write it", () => {
  it("knows lists, tasks, tables, code and emphasis", () => {
    const page = html("# T\n\n- [x] done\n- **bold**\n\n|a|b|\n|-|-:|\n|1|2|\n\n```py\nx = 1\n```\n");
    for (const piece of [
      "<h2>T</h2>",
      'type="checkbox"',
      "<strong>bold</strong>",
      "text-align:right",
      "x = 1",
    ]) {
      expect(page).toContain(piece);
    }
  });

  it("skips no level of heading, wherever a text begins", () => {
    expect(html("## A\n\n#### B\n\n## C").match(/<h\d/g)).toEqual(["<h2", "<h3", "<h2"]);
  });

  it("starts an ordered list where it starts", () => {
    expect(html("3. three\n4. four")).toContain('<ol start="3">');
  });

  it("keeps single line breaks where they were typed", () => {
    expect(html("one\ntwo", true)).toContain("<br/>");
    expect(html("one\ntwo")).not.toContain("<br/>");
  });

  it("shows the name of a file that a block of code has in place of a language", () => {
    expect(html("```src/my notes.txt\nalpha\n```")).toContain('<p class="code-name">src/my notes.txt</p>');
    expect(html("```python\nx\n```")).not.toContain("code-name");
  });

  it("decodes character references, not those in code", () => {
    expect(html("a &lt;b&gt; `&lt;`")).toContain("a &lt;b&gt; <code>&amp;lt;</code>");
    expect(decodeEntities("&#65;&#x42;&mdash;&nope;&#0;&#xD800;")).toBe("AB—&nope;\ufffd\ufffd");
  });
});
