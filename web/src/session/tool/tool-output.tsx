/** One result of a tool call: its text and files in their order. */

import { spillTextPath } from "@/api/paths";
import type { Part, ToolCallPart, ToolResult } from "@/api/types";
import { Code } from "@/content/code-block";
import { languageOf } from "@/content/languages";
import { Terminal } from "@/content/terminal";
import { formatExact } from "@/format/time";
import { PartView } from "@/session/message/part-view";
import { type Whole, WholeText, wholeOf } from "@/session/message/whole-text";
import { useSessionContext } from "@/session/session-context";
import {
  parseHits,
  type SearchOutput,
  splitNumbered,
  unframe,
  type WebResult,
  webResultsOf,
} from "./output-formats";
import { pathOf } from "./tool-changes";
import { relativeTo, statusLabel } from "./tool-summary";
import "./tool-contents.css";
import { Icon } from "@/design/icon";

export function ToolOutput({ result, call }: { result: ToolResult; call: ToolCallPart }) {
  const content = result.content ?? [];
  const { sessionId } = useSessionContext();
  const spill = result.spilled_to
    ? { address: spillTextPath(sessionId, result.spilled_to), size: null }
    : null;
  const errorText = repeatsContent(result.error_text, content) ? null : result.error_text;
  const status = result.status ?? "success";
  const label = statusLabel(status);
  const links = webResultsOf(result);
  return (
    <div className={`tool-output tone-${label.tone}`}>
      <p className="tool-output-title" title={result.completed_at && formatExact(result.completed_at)}>
        {result.preliminary ? "Preliminary result" : "Result"}
        {status !== "success" && <span className="tool-output-status">{label.text}</span>}
        {result.exit_code !== undefined && <span>exit code {result.exit_code}</span>}
      </p>
      {errorText && (
        <pre className="output" tabIndex={0}>
          {errorText}
        </pre>
      )}
      {links.length > 0 && <WebLinks links={links} />}
      {content
        .filter((part) => part.type !== "source-url")
        .map((part, index) => (
          <OutputPart key={index} part={part} call={call} spill={spill} alone={content.length === 1} />
        ))}
      {content.length === 0 && !errorText && <p className="tool-note">No output.</p>}
    </div>
  );
}

/** Many logs give the text of an error a second time as the content of the result. */
function repeatsContent(errorText: string | undefined, content: Part[]): boolean {
  const whole = content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  const error = errorText?.trim() ?? "";
  return whole.includes(error);
}

interface OutputPartProps {
  part: Part;
  call: ToolCallPart;
  spill: Whole | null;
  /** Whether it is all of the result. */
  alone: boolean;
}

function OutputPart({ part, call, spill, alone }: OutputPartProps) {
  if (part.type !== "text") return <PartView part={part} />;
  return (
    <WholeText preview={part.text} whole={wholeOf(part.blob) ?? spill}>
      {(text) => <OutputText text={text} call={call} alone={alone} />}
    </WholeText>
  );
}

/** The output, between what the agent wrote around it for the model. */
function OutputText({ text, call, alone }: { text: string; call: ToolCallPart; alone: boolean }) {
  const { before, body, after } = unframe(text);
  return (
    <>
      {before && <pre className="output-frame">{before}</pre>}
      {(alone || body.trim() !== "") && <OutputBody text={body} call={call} />}
      {after && <pre className="output-frame">{after}</pre>}
    </>
  );
}

/** Longer outputs are shown as they are. */
const LARGEST = 200_000;

function OutputBody({ text, call }: { text: string; call: ToolCallPart }) {
  if (text.trim() === "") return <p className="tool-note">No output.</p>;
  if (call.kind === "read") return <ReadOutput text={text} path={pathOf(call.input)} />;
  const found = call.kind === "search" && text.length <= LARGEST ? parseHits(text) : null;
  if (found) return <FoundFiles found={found} />;
  return (
    <pre className="output" tabIndex={0}>
      <Terminal text={text} />
    </pre>
  );
}

/** A file as a reading tool returned it: its lines with their numbers, in the colours of its language. */
export function ReadOutput({ text, path }: { text: string; path: string }) {
  const numbered = splitNumbered(text);
  if (!numbered)
    return (
      <pre className="output" tabIndex={0}>
        {text}
      </pre>
    );
  return (
    <div className="output read-output" tabIndex={0}>
      <pre className="read-numbers" aria-hidden="true">
        {numbered.numbers.join("\n")}
      </pre>
      <pre className="read-code">
        <Code code={numbered.code} language={languageOf(path)} />
      </pre>
      {numbered.rest && <pre className="read-rest">{numbered.rest}</pre>}
    </div>
  );
}

/** What a search tool found: files, and the lines in them. */
export function FoundFiles({ found }: { found: SearchOutput }) {
  const { cwd } = useSessionContext();
  return (
    <div className="output found" tabIndex={0}>
      {found.remarks.map((remark) => (
        <p key={remark} className="found-remark">
          {remark}
        </p>
      ))}
      {found.files.map((file, index) => (
        <section key={index}>
          <p className="found-path">{relativeTo(cwd, file.path)}</p>
          {file.hits.length > 0 && (
            <ol>
              {file.hits.map((hit, place) => (
                <li key={place} className={hit.context ? "found-context" : undefined}>
                  <span className="found-line">{hit.line}</span>
                  <code>{hit.text}</code>
                </li>
              ))}
            </ol>
          )}
        </section>
      ))}
    </div>
  );
}

/** Pages that were found or read, as links that show their host. */
export function WebLinks({ links }: { links: WebResult[] }) {
  return (
    <ul className="web-links" aria-label="Pages">
      {links.map((link) => (
        <li key={link.url}>
          <Icon name="link" size={13} />
          <a
            className="link"
            href={link.url}
            title={link.url}
            target="_blank"
            rel="noopener noreferrer nofollow"
          >
            {link.title}
          </a>
          <span className="web-host">{hostOf(link.url)}</span>
        </li>
      ))}
    </ul>
  );
}

function hostOf(url: string): string {
  return /^https?:\/\/([^/?#]*)/i.exec(url)?.[1] ?? "";
}
