/** The form for the next prompt. The session's own agent answers it, and the answer is read from the agent's log. */

import { type KeyboardEvent, useId, useState } from "react";
import type { PermissionRequest, PromptResponse, ToolCallPart } from "@/api/types";
import { Icon } from "@/design/icon";
import { type Prompt, usePrompt } from "./prompt";
import "./composer.css";
import { commandOf } from "@/session/tool/input-formats";
import { changesOf } from "@/session/tool/tool-changes";
import { ToolInput } from "@/session/tool/tool-input";

/** Nothing where the agent cannot resume the session. The server takes prompts. */
export function Composer({ sessionId }: { sessionId: string }) {
  const prompt = usePrompt(sessionId);
  if (!prompt.state?.can_go_on) return null;
  return <Form {...prompt} state={prompt.state} />;
}

function Form({
  state: { can_ask, running, problem, permission_requests },
  send,
  answer,
  stop,
}: Prompt & { state: PromptResponse }) {
  const [text, setText] = useState("");
  const field = useId();
  const note = useId();
  const failed = (send.error ?? answer.error ?? stop.error)?.message ?? problem;
  const idle = !running && !send.isPending;
  const submit = () => {
    // A prompt that could not be sent stays in the field.
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
      aria-label="Continue"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <PermissionRequests requests={permission_requests} answer={answer.mutate} />
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
        placeholder="Continue this session…"
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
          This agent cannot ask you here. It may only do what its settings allow.
        </p>
      )}
    </form>
  );
}

interface PermissionRequestsProps {
  requests: PermissionRequest[];
  answer: Prompt["answer"]["mutate"];
}

/** What the agent asks permission for while it answers a prompt of the page: the call, and allow or deny. */
export function PermissionRequests({ requests, answer }: PermissionRequestsProps) {
  if (requests.length === 0) return null;
  return (
    <section className="permission-requests" aria-label="Waiting for your permission" aria-live="polite">
      {requests.map((request) => (
        <RequestCard key={request.id} request={request} answer={answer} />
      ))}
    </section>
  );
}

interface RequestCardProps {
  request: PermissionRequest;
  answer: PermissionRequestsProps["answer"];
}

function RequestCard({ request, answer }: RequestCardProps) {
  const { id, tool_name, reason } = request;
  const [why, setWhy] = useState("");
  const [sent, setSent] = useState(false);
  const decide = (allow: boolean) => {
    setSent(true);
    answer({ id, allow, ...(why.trim() && { reason: why.trim() }) }, { onError: () => setSent(false) });
  };
  return (
    <article className="permission-request">
      <h2>
        May it use <span className="permission-request-tool">{tool_name ?? "a tool"}</span>?
      </h2>
      {reason && <p className="permission-request-reason">{reason}</p>}
      {request.input !== null && (
        <div className="permission-request-input">
          <ToolInput part={callOf(request)} messageId="" />
        </div>
      )}
      <div className="permission-request-answers">
        <button type="button" className="button primary" disabled={sent} onClick={() => decide(true)}>
          <Icon name="check" size={14} /> Allow
        </button>
        <button type="button" className="button" disabled={sent} onClick={() => decide(false)}>
          <Icon name="cross" size={14} /> Deny
        </button>
        <input
          className="field"
          aria-label="Reason for denying"
          placeholder="If you deny: why, or what to do instead"
          value={why}
          onChange={(event) => setWhy(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || why.trim() === "") return;
            event.preventDefault();
            decide(false);
          }}
        />
      </div>
    </article>
  );
}

/** The call as the timeline would show it. Its kind is known from the log only, so it is guessed from the input. */
function callOf({ tool_call_id, tool_name, input }: PermissionRequest): ToolCallPart {
  const call: ToolCallPart = { type: "tool-call", tool_call_id, tool_name: tool_name ?? "", input };
  if (changesOf(call).length > 0) return { ...call, kind: "edit" };
  return commandOf(call) ? { ...call, kind: "execute" } : call;
}
