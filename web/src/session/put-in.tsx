/** What the agent put into a prompt beside what was typed (contents of named files, marks around images): one line. */

import type { Part, TextPart } from "@/api/types";
import { Icon } from "@/design/icon";
import { plural } from "@/format/numbers";
import { useDisclosure } from "./disclosure";
import { previewOf } from "./injected-message";
import { PartFrame } from "./parts/part-frame";
import { useSessionContext } from "./session-context";

export interface PlacedText {
  part: TextPart;
  index: number;
}

/** The texts of a prompt that nobody typed, with their places among its parts. */
export function putInto(parts: Part[]): PlacedText[] {
  return parts.flatMap((part, index) => (part.type === "text" && isPutIn(part) ? [{ part, index }] : []));
}

/** Agents say so in their own fields, all of them by the same word. */
function isPutIn({ metadata = {} }: TextPart): boolean {
  return Object.values(metadata).some(
    (own) => typeof own === "object" && own !== null && !Array.isArray(own) && own.synthetic === true,
  );
}

export function PutIn({ messageId, texts }: { messageId: string; texts: PlacedText[] }) {
  const { linked } = useSessionContext();
  const isLinked = linked?.messageId === messageId && texts.some(({ index }) => index === linked.part);
  const [open, toggle] = useDisclosure(`put-in/${messageId}`, isLinked);
  const all = texts.map(({ part }) => part.text).join("\n");
  return (
    <div className="put-in part">
      <button type="button" className="fold fold-faint" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name="system" size={14} />
        <span>Put in by the agent</span>
        {!open && <span className="fold-preview">{previewOf(all)}</span>}
        <span className="fold-size">{plural(all.length, "character")}</span>
      </button>
      {open &&
        texts.map(({ part, index }) => (
          <PartFrame key={index} place={{ messageId, index }} className="part">
            <pre className="output" tabIndex={0}>
              {part.text.trim()}
            </pre>
          </PartFrame>
        ))}
    </div>
  );
}
