/** Where the next prompt is written: the session's own agent answers it, and the answer comes by its log. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import { getJson, sendJson } from "@/api/client";
import { promptPath } from "@/api/paths";
import type { PromptAnswer } from "@/api/types";
import { Icon } from "@/design/icon";
import { useStatus } from "@/shell/use-status";
import "./composer.css";

/** Milliseconds between two looks whether the agent is done. */
const LOOK = 1_000;

/** Nothing, where the server takes no prompts or the agent cannot go on with the session. */
export function Composer({ sessionId }: { sessionId: string }) {
  const prompts = useStatus()?.prompts ?? false;
  const { state, send, stop } = usePrompt(sessionId, prompts);
  if (!state?.can_go_on) return null;
  return <Open state={state} send={send} stop={stop} />;
}

interface OpenProps {
  state: PromptAnswer;
  send: ReturnType<typeof usePrompt>["send"];
  stop: ReturnType<typeof usePrompt>["stop"];
}

function Open({ state: { running, problem }, send, stop }: OpenProps) {
  const [text, setText] = useState("");
  const field = useId();
  const failed = send.error?.message ?? stop.error?.message ?? problem;
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
    </form>
  );
}

function usePrompt(sessionId: string, prompts: boolean) {
  const queries = useQueryClient();
  const path = promptPath(sessionId);
  const queryKey = ["prompt", sessionId];
  const { data: state } = useQuery({
    queryKey,
    queryFn: ({ signal }) => getJson<PromptAnswer>(path, {}, signal),
    enabled: prompts,
    refetchInterval: (query) => (query.state.data?.running ? LOOK : false),
  });
  const keep = { onSuccess: (answer: PromptAnswer) => queries.setQueryData(queryKey, answer) };
  const send = useMutation({
    mutationFn: (text: string) => sendJson<PromptAnswer>("POST", path, { text }),
    ...keep,
  });
  const stop = useMutation({ mutationFn: () => sendJson<PromptAnswer>("DELETE", path), ...keep });
  const { reset } = stop;
  useEffect(() => {
    if (state?.running) reset();
  }, [state?.running, reset]);
  return { state, send, stop };
}
