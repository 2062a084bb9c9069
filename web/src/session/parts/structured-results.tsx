/** The agent's own JSON of a call's outcomes, when somebody asks for it. */

import { JsonView } from "@/content/json-view";
import { useStructured } from "./use-structured";

export function StructuredResults({ messageId, toolCallId }: { messageId: string; toolCallId: string }) {
  const { results, error } = useStructured(messageId, toolCallId, true);
  if (error) return <p className="tool-note">Could not be loaded: {error.message}</p>;
  if (!results) return <p className="tool-note">Loading…</p>;
  return (
    <div className="tool-structured">
      {results.length === 0 && <p className="tool-note">The agent recorded none.</p>}
      {results.map((result, index) => (
        <JsonView key={index} value={result} />
      ))}
    </div>
  );
}
