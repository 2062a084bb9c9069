/** What the agent asks leave for while it answers a prompt of the page: the call as it is, and yes or no. */

import { useState } from "react";
import type { PromptQuestion, ToolCallPart } from "@/api/types";
import { Icon } from "@/design/icon";
import { changesOf } from "./parts/tool-changes";
import { commandOf } from "./parts/tool-command";
import { ToolInput } from "./parts/tool-input";
import type { Prompt } from "./use-prompt";

interface PromptQuestionsProps {
  questions: PromptQuestion[];
  answer: Prompt["answer"]["mutate"];
}

export function PromptQuestions({ questions, answer }: PromptQuestionsProps) {
  if (questions.length === 0) return null;
  return (
    <section className="prompt-questions" aria-label="Waiting for your leave" aria-live="polite">
      {questions.map((question) => (
        <Question key={question.id} question={question} answer={answer} />
      ))}
    </section>
  );
}

interface QuestionProps {
  question: PromptQuestion;
  answer: PromptQuestionsProps["answer"];
}

function Question({ question, answer }: QuestionProps) {
  const { id, tool_name, reason } = question;
  const [why, setWhy] = useState("");
  const [told, setTold] = useState(false);
  const tell = (allow: boolean) => {
    setTold(true);
    answer({ id, allow, ...(why.trim() && { reason: why.trim() }) }, { onError: () => setTold(false) });
  };
  return (
    <article className="prompt-question">
      <h2>
        May it use <span className="prompt-question-tool">{tool_name ?? "a tool"}</span>?
      </h2>
      {reason && <p className="prompt-question-reason">{reason}</p>}
      {question.input !== null && (
        <div className="prompt-question-input">
          <ToolInput part={callOf(question)} messageId="" />
        </div>
      )}
      <div className="prompt-question-answers">
        <button type="button" className="button primary" disabled={told} onClick={() => tell(true)}>
          <Icon name="check" size={14} /> Allow
        </button>
        <button type="button" className="button" disabled={told} onClick={() => tell(false)}>
          <Icon name="cross" size={14} /> Deny
        </button>
        <input
          className="field"
          aria-label="What it is told if you deny"
          placeholder="If not: why, or what else to do"
          value={why}
          onChange={(event) => setWhy(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || why.trim() === "") return;
            event.preventDefault();
            tell(false);
          }}
        />
      </div>
    </article>
  );
}

/** The call as its card would show it. What kind of tool it is only the log tells: here its arguments do. */
function callOf({ tool_call_id, tool_name, input }: PromptQuestion): ToolCallPart {
  const call: ToolCallPart = { type: "tool-call", tool_call_id, tool_name: tool_name ?? "", input };
  if (changesOf(call).length > 0) return { ...call, kind: "edit" };
  return commandOf(call) ? { ...call, kind: "execute" } : call;
}
