/** The head of a branch that the conversation left: what it was, how long, and the ways in and on. */

import { Icon } from "@/design/icon";
import { plural } from "@/format/numbers";
import { commandText } from "./command-text";
import { useDisclosure } from "./disclosure";
import type { BranchEntry } from "./entry";
import { BRANCHES } from "./fates";
import { previewOf, textOf } from "./injected-message";
import { JumpLink } from "./jump-link";
import "./branch-view.css";

export function BranchView({ entry }: { entry: BranchEntry }) {
  const [open, toggle] = useDisclosure(entry.id);
  const { icon, text } = BRANCHES[entry.fate];
  return (
    <div className="branch">
      <button type="button" className="fold branch-fold" aria-expanded={open} onClick={toggle} data-toggle>
        <Icon name={icon} size={14} />
        <span>{text}</span>
        {entry.prompt && (
          <span className="fold-preview">{previewOf(commandText(textOf(entry.prompt.message)))}</span>
        )}
        <span className="fold-size">{plural(entry.messages, "message")}</span>
      </button>
      {entry.cause && <JumpLink to={{ id: entry.cause }}>Where it went on</JumpLink>}
    </div>
  );
}
