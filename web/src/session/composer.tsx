/** Where the next prompt is written: the session's own agent answers it, and the answer comes by its log. */

import { type KeyboardEvent, useId, useState } from "react";
import type { PromptAnswer } from "@/api/types";
import { Icon } from "@/design/icon";
import { useStatus } from "@/shell/use-status";
import { PromptQuestions } from "./prompt-questions";
import { type Prompt, usePrompt } from "./use-prompt";
import "./composer.css";

/** Nothing, where the server takes no prompts or the agent cannot go on with the session. */
export function Composer({ sessionId }: { sessionId: string }) {
  const prompts = useStatus()?.prompts ?? false;
  const prompt = usePrompt(sessionId, prompts);
  if (!prompt.state?.can_go_on) return null;
  return <Open {...prompt} state={prompt.state} />;
}

function Open({
  state: { can_ask, running, problem, questions },
  send,
  answer,
  stop,
}: Prompt & { state: PromptAnswer }) {
  const [text, setText] = useState("");
  const field = useId();
  const note = useId();
  const failed = (send.error ?? answer.error ?? stop.error)?.message ?? problem;
  const idle = !running && !send.isPending;
  const submit = () => {
    // What could not be sent stays to be sent again.
    if (idle && text.trim() !== "") send.mutate(text, { onSuccess: () => setText("") });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    submit();
  };
  return (
    <form
      className="composer"
      aria-label="Go on"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <PromptQuestions questions={questions} answer={answer.mutate} />
      {failed && (
        <p className="composer-problem" role="alert">
          {failed}
        </p>
      )}
      <label className="visually-hidden" htmlFor={field}>
        Next prompt
      </label>
      <textarea
        id={field}
        className="field"
        rows={Math.min(8, text.split("\n").length)}
        placeholder="Go on with this session…"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        aria-describedby={can_ask ? undefined : note}
      />
      {running ? (
        <button type="button" className="button" disabled={stop.isPending} onClick={() => stop.mutate()}>
          <Icon name="stop" size={14} /> Stop
        </button>
      ) : (
        <button type="submit" className="button primary" disabled={!idle || text.trim() === ""}>
          <Icon name="up" size={14} /> Send
        </button>
      )}
      {!can_ask && (
        <p className="composer-note" id={note}>
          This agent cannot ask you here: what its settings do not allow, it does without.
        </p>
      )}
    </form>
  );
}
