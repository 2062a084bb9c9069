/** What a tool was given: an edit as a diff, a command as a command, a list as a list, anything else as its fields. */

import { useMemo } from "react";
import type { Json, ToolCallPart } from "@/api/types";
import { CodeBlock } from "@/content/code-block";
import { JsonView } from "@/content/json-view";
import { Markdown } from "@/content/markdown";
import { Changes } from "./change-view";
import { isObject } from "./json-fields";
import { QuestionList } from "./question-list";
import { TodoList } from "./todo-list";
import { changesOf, recordedChanges, SHOWN_BY_DIFF } from "./tool-changes";
import { commandOf, SHOWN_BY_COMMAND } from "./tool-command";
import { planOf, questionsOf } from "./tool-questions";
import { todosOf } from "./tool-todos";
import { useStructured } from "./use-structured";
import { WholeText, wholeOf } from "./whole-text";

interface ToolInputProps {
  part: ToolCallPart;
  messageId: string;
}

export function ToolInput({ part, messageId }: ToolInputProps) {
  if (part.input_blob) return <WholeText preview={part.input_text ?? ""} whole={wholeOf(part.input_blob)} />;
  if (part.kind === "edit") return <EditInput part={part} messageId={messageId} />;
  if (part.kind === "execute") return <CommandInput part={part} />;
  return <OtherInput part={part} />;
}

/** What was asked for until it is known what was done. */
function EditInput({ part, messageId }: ToolInputProps) {
  const asked = useMemo(() => changesOf(part), [part]);
  const { results } = useStructured(messageId, part.tool_call_id, hasResult(part));
  const done = useMemo(() => results?.flatMap(recordedChanges) ?? [], [results]);
  const changes = done.length > 0 ? done : asked;
  if (changes.length === 0) return <PlainInput part={part} />;
  return (
    <>
      <Changes changes={changes} />
      <Fields input={part.input} without={SHOWN_BY_DIFF} />
    </>
  );
}

function hasResult(part: ToolCallPart): boolean {
  return (part.results ?? []).some((result) => (result.status ?? "success") === "success");
}

function CommandInput({ part }: { part: ToolCallPart }) {
  const command = commandOf(part);
  if (command === null) return <PlainInput part={part} />;
  return (
    <>
      <CodeBlock code={command.text} language={command.language} />
      <Fields input={part.input} without={SHOWN_BY_COMMAND} />
    </>
  );
}

function OtherInput({ part }: { part: ToolCallPart }) {
  const todos = todosOf(part);
  if (todos) return <TodoList todos={todos} />;
  const questions = questionsOf(part);
  if (questions.length > 0) {
    return <QuestionList questions={questions} answer={answerOf(part)} />;
  }
  const plan = planOf(part);
  return plan ? <Markdown text={plan} /> : <PlainInput part={part} />;
}

export function answerOf(part: ToolCallPart): string {
  const contents = (part.results ?? []).flatMap((result) => result.content ?? []);
  return contents.map((content) => (content.type === "text" ? content.text : "")).join("\n");
}

function PlainInput({ part }: { part: ToolCallPart }) {
  if (part.input === undefined) return part.input_text ? <CodeBlock code={part.input_text} /> : null;
  return isObject(part.input) ? <Fields input={part.input} /> : <JsonView value={part.input} />;
}

const NOTHING: ReadonlySet<string> = new Set();

function Fields({ input, without = NOTHING }: { input: Json | undefined; without?: ReadonlySet<string> }) {
  if (!isObject(input)) return null;
  const fields = Object.fromEntries(Object.entries(input).filter(([name]) => !without.has(name)));
  return Object.keys(fields).length > 0 ? <JsonView value={fields} /> : null;
}
