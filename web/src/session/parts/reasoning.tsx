/** What the model thought, folded to its length; where the log has none, that is said. */

import type { ReasoningPart } from "@/api/types";
import { Markdown } from "@/content/markdown";
import { Icon } from "@/design/icon";
import { plural } from "@/format/numbers";
import { formatDuration } from "@/format/time";
import { useDisclosure } from "../disclosure";
import { useLinked } from "../session-context";
import { disclosureId, PartFrame, type PartPlace } from "./part-frame";
import { WholeText, wholeOf } from "./whole-text";

interface ReasoningProps {
  part: ReasoningPart;
  place: PartPlace;
}

export function Reasoning({ part, place }: ReasoningProps) {
  const { linked } = useLinked(place.messageId, place.index);
  const [open, toggle] = useDisclosure(disclosureId(place), linked);
  if (!part.text && !part.blob) return <WithheldReasoning part={part} place={place} />;
  return (
    <PartFrame place={place} className="reasoning">
      <button type="button" className="fold" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name="think" />
        <span>Thinking</span>
        {!open && <span className="fold-preview">{previewOf(part.text)}</span>}
        <span className="fold-size">{sizeOf(part)}</span>
      </button>
      {open && (
        <div className="reasoning-text">
          <WholeText preview={part.text} whole={wholeOf(part.blob)}>
            {(text) => <Markdown text={text} />}
          </WholeText>
        </div>
      )}
    </PartFrame>
  );
}

/** The provider counted it, but the log has nothing of it. */
export function UnrecordedReasoning({ tokens }: { tokens: number }) {
  return (
    <p className="reasoning fold fold-still">
      <Icon name="think" />
      <span>Thinking, not recorded</span>
      <span className="fold-size">{plural(tokens, "token")}</span>
    </p>
  );
}

function WithheldReasoning({ part, place }: ReasoningProps) {
  return (
    <PartFrame place={place} className="reasoning">
      <p className="fold fold-still">
        <Icon name="think" />
        <span>{part.redacted ? "Thinking, withheld by the provider" : "Thinking, not recorded"}</span>
      </p>
    </PartFrame>
  );
}

/** The first words without the marks of Markdown. */
function previewOf(text: string): string {
  return text
    .slice(0, 400)
    .replace(/[*_`#>]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

function sizeOf(part: ReasoningPart): string {
  const words = plural(part.text.split(/\s+/).filter(Boolean).length, "word");
  return part.duration_ms === undefined ? words : `${words} · ${formatDuration(part.duration_ms)}`;
}
