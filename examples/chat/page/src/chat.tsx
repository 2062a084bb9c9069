// All that a page needs: what is stored, `resume` for what runs, and the buttons.
import { useChat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { type FormEvent, useEffect, useState } from "react";
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

  // Who reads the end of the chat goes on reading there.
  useEffect(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.documentElement;
    if (scrollHeight - scrollTop - clientHeight < 200) window.scrollTo(0, scrollHeight);
  }, [messages]);

  function send(event: FormEvent) {
    event.preventDefault();
    if (busy || !text.trim()) return;
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
        <input
          aria-label="Message"
          placeholder="Say something"
          autoFocus
          value={text}
          onChange={event => setText(event.target.value)}
        />
        {busy ? (
          // The hook's own stop() would only leave: the answer goes on at the server.
          <button type="button" onClick={() => fetch(`/api/chat/${encodeURIComponent(id)}/stop`, { method: "POST" })}>
            Stop
          </button>
        ) : (
          <button disabled={!text.trim()}>Send</button>
        )}
      </form>
    </main>
  );
}
