/** What a tool was given: an edit as a diff, a command as a command, a list as a list, anything else as its fields. */

import { useMemo } from "react";
import type { Json, MessageResponse, ToolCallPart } from "@/api/types";
import { CodeBlock } from "@/content/code-block";
import { JsonView } from "@/content/json-view";
import { Markdown } from "@/content/markdown";
import { WholeText, wholeOf } from "@/session/message/whole-text";
import { Changes } from "./change-view";
import {
  commandOf,
  planOf,
  type Question,
  questionsOf,
  SHOWN_BY_COMMAND,
  type Todo,
  type TodoStatus,
  todosOf,
} from "./input-formats";
import { isObject } from "./json-fields";
import { changesOf, recordedChanges, SHOWN_BY_DIFF } from "./tool-changes";
import "./tool-contents.css";
import { useQuery } from "@tanstack/react-query";
import { getJson } from "@/api/client";
import { messagePath } from "@/api/paths";
import { Icon, type IconName } from "@/design/icon";
import { useSessionContext } from "@/session/session-context";

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

/** The requested changes, until the recorded ones are loaded. */
function EditInput({ part, messageId }: ToolInputProps) {
  const requested = useMemo(() => changesOf(part), [part]);
  const { results } = useStructuredResults(messageId, part.tool_call_id, hasResult(part));
  const recorded = useMemo(() => results?.flatMap(recordedChanges) ?? [], [results]);
  const changes = recorded.length > 0 ? recorded : requested;
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

/** What the user was asked, and the choices. */
export function QuestionList({ questions, answer }: { questions: Question[]; answer: string }) {
  return (
    <dl className="questions">
      {questions.map((question, index) => (
        <div key={index}>
          <dt>{question.text}</dt>
          {question.choices.map((choice) => (
            <dd
              key={choice.label}
              className={isChosen(answer, question, choice.label) ? "chosen" : undefined}
            >
              <span className="question-choice">{choice.label}</span>
              {choice.description && <span className="question-note">{choice.description}</span>}
            </dd>
          ))}
        </div>
      ))}
    </dl>
  );
}

/** Agents answer the model with `"Which colour?"="Red"`, or with the chosen words alone. */
function isChosen(answer: string, question: Question, label: string): boolean {
  return answer.includes(`"${question.text}"="${label}"`) || answer.trim() === label;
}

const MARKS: Record<TodoStatus, { icon: IconName; label: string }> = {
  pending: { icon: "open", label: "to do" },
  doing: { icon: "doing", label: "in progress" },
  done: { icon: "checked", label: "done" },
  dropped: { icon: "cross", label: "dropped" },
};

/** A list of tasks. */
export function TodoList({ todos }: { todos: Todo[] }) {
  return (
    <ul className="todos" aria-label="Tasks">
      {todos.map((todo, index) => (
        <li key={index} className={`todo todo-${todo.status}`}>
          <Icon name={MARKS[todo.status].icon} size={14} />
          <span className="visually-hidden">{MARKS[todo.status].label}:</span>
          <span className="todo-text">{todo.text}</span>
        </li>
      ))}
    </ul>
  );
}

export interface StructuredAnswer {
  /** Undefined until they are there. */
  results: Json[] | undefined;
  error: Error | null;
}

/**
 * The agent's own JSON of a call's results, loaded from the archive when it is wanted; one request per message.
 */
export function useStructuredResults(
  messageId: string,
  toolCallId: string,
  wanted: boolean,
): StructuredAnswer {
  const { sessionId } = useSessionContext();
  const answer = useQuery({
    queryKey: ["message", messageId, sessionId],
    queryFn: ({ signal }) => getJson<MessageResponse>(messagePath(messageId), { session: sessionId }, signal),
    enabled: wanted,
  });
  return { results: answer.data && structuredOf(answer.data, toolCallId), error: answer.error };
}

function structuredOf(answer: MessageResponse, toolCallId: string): Json[] {
  const calls = (answer.message.parts ?? []).filter((part) => part.type === "tool-call");
  const results = calls.find((call) => call.tool_call_id === toolCallId)?.results ?? [];
  return results.flatMap((result) => (result.structured === undefined ? [] : [result.structured]));
}
