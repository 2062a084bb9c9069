/** The agent's own JSON of a call's outcome, when somebody asks for it. */

import { useState } from "react";
import { JsonView } from "@/content/json-view";
import { useStructured } from "./use-structured";

export function StructuredResults({ messageId, toolCallId }: { messageId: string; toolCallId: string }) {
  const [open, setOpen] = useState(false);
  const { results, error } = useStructured(messageId, toolCallId, open);
  return (
    <div className="tool-structured">
      <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
        Structured result
      </button>
      {open && !results && !error && <p className="tool-note">Loading…</p>}
      {open && error && <p className="tool-note">Could not be loaded: {error.message}</p>}
      {open && results?.length === 0 && <p className="tool-note">The agent recorded none.</p>}
      {open && results?.map((result, index) => <JsonView key={index} value={result} />)}
    </div>
  );
}
