import type { ChatAddToolApproveResponseFunction, UIMessage } from "ai";

type Props = { part: UIMessage["parts"][number]; onAnswer: ChatAddToolApproveResponseFunction };

export function Part({ part, onAnswer }: Props) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (part.type === "reasoning") {
    return (
      <details>
        <summary>Thinking</summary>
        {part.text}
      </details>
    );
  }
  if (part.type !== "dynamic-tool") return null;
  const { approval } = part;
  return (
    <section className="tool" aria-label={part.toolName} data-state={part.state}>
      <b>{part.toolName}</b> <code>{JSON.stringify(part.input)}</code>
      {part.state === "output-available" && <pre>{JSON.stringify(part.output, null, 2)}</pre>}
      {part.state === "output-error" && <pre>{part.errorText}</pre>}
      {part.state === "output-denied" && <pre>Not allowed.</pre>}
      {part.state === "approval-requested" && approval && (
        <div className="question">
          <button onClick={() => onAnswer({ id: approval.id, approved: true })}>Allow</button>
          <button onClick={() => onAnswer({ id: approval.id, approved: false })}>Refuse</button>
        </div>
      )}
    </section>
  );
}
