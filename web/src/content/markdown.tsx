/**
 * Markdown from a log as React elements. Nothing is ever set as HTML: raw HTML is shown as the text it is, links
 * go only to http, https and mailto, and images of other hosts are links, never requests.
 */

import { lexer, type MarkedToken, type Token, type Tokens } from "marked";
import { createElement, Fragment, memo, type ReactNode, useMemo } from "react";
import { CodeBlock } from "./code-block";
import { languageOf } from "./languages";
import "./markdown.css";

interface MarkdownProps {
  text: string;
  /** Keep single line breaks, as in what people type. */
  breaks?: boolean;
}

/** Longer texts are no prose: read as Markdown they would stall the page. */
const LARGEST = 200_000;

export const Markdown = memo(function Markdown({ text, breaks = false }: MarkdownProps) {
  const content = useMemo(() => contentOf(text, breaks), [text, breaks]);
  return (
    <div className="markdown" dir="auto">
      {content}
    </div>
  );
});

function contentOf(text: string, breaks: boolean): ReactNode {
  if (text.length > LARGEST) return <pre>{text}</pre>;
  try {
    return renderAll(rankHeadings(lexer(text, { gfm: true, breaks })));
  } catch {
    // Nested deeper than the parser can go: nobody writes so, and it is shown as plain text.
    return <pre>{text}</pre>;
  }
}

/** Headings by their order, whatever level a text begins at: they stand below the page's own, and skip none. */
function rankHeadings(tokens: Token[]): Token[] {
  const depths = new Set(
    tokens.flatMap((token) => (token.type === "heading" ? [token.depth as number] : [])),
  );
  const ranks = new Map([...depths].sort().map((depth, rank) => [depth, rank + 1]));
  return tokens.map((token) =>
    token.type === "heading" ? { ...token, depth: ranks.get(token.depth) ?? token.depth } : token,
  );
}

function renderAll(tokens: Token[] | undefined): ReactNode {
  return tokens?.map((token, index) => <Fragment key={index}>{render(token as MarkedToken)}</Fragment>);
}

function render(token: MarkedToken): ReactNode {
  switch (token.type) {
    case "text":
      return "tokens" in token && token.tokens ? renderAll(token.tokens) : decodeEntities(token.text);
    case "escape":
      return token.text;
    case "paragraph":
      return <p>{renderAll(token.tokens)}</p>;
    case "heading":
      return createElement(`h${Math.min(token.depth + 1, 6)}`, null, renderAll(token.tokens));
    case "strong":
      return <strong>{renderAll(token.tokens)}</strong>;
    case "em":
      return <em>{renderAll(token.tokens)}</em>;
    case "del":
      return <del>{renderAll(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "code":
      return <FencedCode code={token.text} info={token.lang ?? ""} />;
    case "br":
      return <br />;
    case "hr":
      return <hr />;
    case "blockquote":
      return <blockquote>{renderAll(token.tokens)}</blockquote>;
    case "list":
      return renderList(token);
    case "checkbox":
      return <input type="checkbox" checked={token.checked} readOnly disabled />;
    case "table":
      return renderTable(token);
    case "link":
      return renderLink(token.href, renderAll(token.tokens));
    case "image":
      return renderLink(token.href, `[image: ${token.text || token.href}]`);
    case "html":
      return token.block ? <pre className="markdown-html">{token.text.trimEnd()}</pre> : token.text;
    default:
      return null;
  }
}

/** A block of code. What agents put around the contents of a file may name the file in place of a language. */
function FencedCode({ code, info }: { code: string; info: string }) {
  const [language = ""] = info.split(/\s/, 1);
  if (!/[./\\]/.test(language)) return <CodeBlock code={code} language={language || undefined} />;
  return (
    <>
      <p className="code-name">{decodeEntities(info)}</p>
      <CodeBlock code={code} language={languageOf(info)} />
    </>
  );
}

function renderList(token: Tokens.List): ReactNode {
  const items = token.items.map((item, index) => (
    <li key={index} className={item.task ? "markdown-task" : undefined}>
      {renderAll(item.tokens)}
    </li>
  ));
  return token.ordered ? <ol start={token.start || 1}>{items}</ol> : <ul>{items}</ul>;
}

function renderTable(token: Tokens.Table): ReactNode {
  const cells = (row: Tokens.TableCell[], tag: "th" | "td") =>
    row.map((cell, index) =>
      createElement(
        tag,
        { key: index, style: { textAlign: cell.align ?? undefined } },
        renderAll(cell.tokens),
      ),
    );
  return (
    <div className="markdown-table" tabIndex={0}>
      <table>
        <thead>
          <tr>{cells(token.header, "th")}</tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>{cells(row, "td")}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const SAFE_LINK = /^(https?:\/\/|mailto:)/i;

function renderLink(href: string, children: ReactNode): ReactNode {
  if (!SAFE_LINK.test(href)) return <span title={href}>{children}</span>;
  return (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

const NAMED: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  larr: "←",
  rarr: "→",
  times: "×",
  middot: "·",
  bull: "•",
  copy: "©",
};

const REFERENCE = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,8}));/g;

/** Character references in Markdown text; one that is not in the table stays as it was written. */
export function decodeEntities(text: string): string {
  return text.replace(REFERENCE, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name) return NAMED[name] ?? whole;
    return character(decimal ? Number.parseInt(decimal, 10) : Number.parseInt(hex ?? "", 16));
  });
}

function character(code: number): string {
  const invalid = code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff);
  return invalid ? "\ufffd" : String.fromCodePoint(code);
}
