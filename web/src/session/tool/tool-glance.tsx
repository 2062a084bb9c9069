/** What a folded call shows of itself: its changes, tasks, questions, report, error or pictures. */

import { useMemo } from "react";
import type { FilePart, ToolCallPart } from "@/api/types";
import type { FileChange } from "@/content/patches";
import { Terminal } from "@/content/terminal";
import { FileView } from "@/session/message/part-view";
import { ChangesGlance } from "./change-view";
import { questionsOf, todosOf } from "./input-formats";
import { unframe } from "./output-formats";
import { answerOf, QuestionList, TodoList } from "./tool-input";

interface ToolGlanceProps {
  part: ToolCallPart;
  changes: FileChange[];
  onMore: () => void;
}

export function ToolGlance({ part, changes, onMore }: ToolGlanceProps) {
  const trouble = useMemo(() => troubleOf(part), [part]);
  if (trouble) {
    return (
      <pre className={`glance trouble tone-${trouble.tone}`}>
        <Terminal text={trouble.text} />
      </pre>
    );
  }
  if (changes.length > 0) return <ChangesGlance changes={changes} onMore={onMore} />;
  const report = reportOf(part);
  if (report) return <pre className="glance report">{report}</pre>;
  const pictures = picturesOf(part);
  if (pictures.length > 0) {
    return (
      <div className="glance pictures">
        {pictures.map((picture, index) => (
          <FileView key={index} part={picture} />
        ))}
      </div>
    );
  }
  return <Asked part={part} />;
}

function Asked({ part }: { part: ToolCallPart }) {
  const todos = todosOf(part);
  const questions = questionsOf(part);
  if (!todos && questions.length === 0) return null;
  return (
    <div className="glance">
      {todos ? <TodoList todos={todos} /> : <QuestionList questions={questions} answer={answerOf(part)} />}
    </div>
  );
}

function picturesOf(part: ToolCallPart): FilePart[] {
  const contents = (part.results ?? []).flatMap((result) => result.content ?? []);
  return contents.filter(
    (content): content is FilePart =>
      content.type === "file" && content.blob !== undefined && content.media_type.startsWith("image/"),
  );
}

/** The first lines that a subagent returned; null while it has only been launched. */
export function reportOf(part: ToolCallPart): string | null {
  const result = part.kind === "subagent" ? part.results?.findLast((found) => !found.preliminary) : undefined;
  const texts = (result?.content ?? []).flatMap((content) => (content.type === "text" ? [content.text] : []));
  const text = unframe(texts.join("\n")).body.trim();
  // Some agents return JSON that only reports that the subagent was started, or has ended.
  return text === "" || text.startsWith("{") ? null : cut(text, false);
}

const LINES = 3;
const WIDTH = 400;

/** The last lines of a failed command, the first of another failure; of a denied call what the user answered. */
export function troubleOf(part: ToolCallPart): { text: string; tone: "error" | "warning" } | null {
  const result = part.results?.at(-1);
  const texts = (result?.content ?? []).flatMap((content) => (content.type === "text" ? [content.text] : []));
  const text = unframe(result?.error_text ?? texts.join("\n")).body;
  if (part.state === "output-denied") {
    const reply = /the user said:\n([\s\S]+)/.exec(text)?.[1] ?? part.approval?.reason;
    return reply ? { text: cut(reply, false), tone: "warning" } : null;
  }
  if (part.state !== "output-error" || text.trim() === "") return null;
  return { text: cut(text.replace(/^Exit code \d+\n/, ""), part.kind === "execute"), tone: "error" };
}

function cut(text: string, atEnd: boolean): string {
  // There is room for a few lines: blank ones, before a note about the exit code, would take it.
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const kept = atEnd ? lines.slice(-LINES) : lines.slice(0, LINES);
  return kept.map((line) => (line.length > WIDTH ? `${line.slice(0, WIDTH)}…` : line)).join("\n");
}
