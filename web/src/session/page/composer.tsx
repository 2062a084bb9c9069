/** Where the next prompt is written: the session's own agent answers it, and the answer comes by its log. */

import { type KeyboardEvent, useId, useState } from "react";
import type { PermissionRequest, PromptAnswer, ToolCallPart } from "@/api/types";
import { Icon } from "@/design/icon";
import { useStatus } from "@/shell/use-status";
import { type Prompt, usePrompt } from "./prompt";
import "./composer.css";
import { commandOf } from "@/session/tool/input-formats";
import { changesOf } from "@/session/tool/tool-changes";
import { ToolInput } from "@/session/tool/tool-input";

/** Nothing, where the server takes no prompts or the agent cannot go on with the session. */
export function Composer({ sessionId }: { sessionId: string }) {
  const prompts = useStatus()?.prompts ?? false;
  const prompt = usePrompt(sessionId, prompts);
  if (!prompt.state?.can_go_on) return null;
  return <Open {...prompt} state={prompt.state} />;
}

function Open({
  state: { can_ask, running, problem, permission_requests },
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
  const [told, setTold] = useState(false);
  const tell = (allow: boolean) => {
    setTold(true);
    answer({ id, allow, ...(why.trim() && { reason: why.trim() }) }, { onError: () => setTold(false) });
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
function callOf({ tool_call_id, tool_name, input }: PermissionRequest): ToolCallPart {
  const call: ToolCallPart = { type: "tool-call", tool_call_id, tool_name: tool_name ?? "", input };
  if (changesOf(call).length > 0) return { ...call, kind: "edit" };
  return commandOf(call) ? { ...call, kind: "execute" } : call;
}
