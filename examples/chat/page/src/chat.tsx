// All that a page needs: what is stored, `resume` for what runs, and the buttons.
import { useChat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { type FormEvent, useState } from "react";
import { Part } from "./part";

export function Chat({ id, messages: stored }: { id: string; messages: UIMessage[] }) {
  const { messages, sendMessage, regenerate, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: stored,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const [text, setText] = useState("");
  const busy = status === "submitted" || status === "streaming";

  function send(event: FormEvent) {
    event.preventDefault();
    sendMessage({ text });
    setText("");
  }

  return (
    <main data-status={status}>
      {messages.map(message => (
        <article key={message.id} className={message.role} aria-label={message.role}>
          {message.parts.map((part, number) => (
            <Part key={number} part={part} onAnswer={addToolApprovalResponse} />
          ))}
        </article>
      ))}
      {error && (
        <p role="alert">
          {error.message} <button onClick={() => regenerate()}>Try again</button>
        </p>
      )}
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={event => setText(event.target.value)} />
        {busy ? (
          // The hook's own stop() would only leave: the answer goes on at the server.
          <button type="button" onClick={() => fetch(`/api/chat/${encodeURIComponent(id)}/stop`, { method: "POST" })}>
            Stop
          </button>
        ) : (
          <button disabled={!text}>Send</button>
        )}
      </form>
    </main>
  );
}
