/** Copies a message or a part of it, as one wants to have it, or the way back to it. */

import { sessionPage } from "@/api/paths";
import type { Message, Part } from "@/api/types";
import { CopyButton } from "@/design/copy-button";
import { asJson, messageMarkdown, messageText, partMarkdown, partText } from "./copy-formats";
import { useSessionContext } from "./session-context";

export function CopyMessage({ message }: { message: Message }) {
  const { sessionId } = useSessionContext();
  return (
    <CopyLine
      text={() => messageText(message)}
      markdown={() => messageMarkdown(message)}
      json={() => asJson(message)}
      link={sessionPage(sessionId, message.id)}
    />
  );
}

export function CopyPart({ part, messageId, index }: { part: Part; messageId: string; index: number }) {
  const { sessionId } = useSessionContext();
  return (
    <CopyLine
      text={() => partText(part)}
      markdown={() => partMarkdown(part)}
      json={() => asJson(part)}
      link={sessionPage(sessionId, messageId, index)}
    />
  );
}

interface CopyLineProps {
  text: () => string;
  markdown: () => string;
  json: () => string;
  link: string;
}

function CopyLine({ text, markdown, json, link }: CopyLineProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for what one fills in
    <span className="copy-as" role="group" aria-label="Copy as">
      Copy as
      <CopyButton className="link" label="text" text={text} />
      <CopyButton className="link" label="Markdown" text={markdown} />
      <CopyButton className="link" label="JSON" text={json} />
      <CopyButton className="link" label="link" text={() => location.origin + link} />
    </span>
  );
}
