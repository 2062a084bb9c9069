/** How a session of a hub goes on: on the machine where it ran, or on the reader's own. */

import type { SessionItem } from "@/api/types";
import { CopyButton } from "@/design/copy-button";
import { MenuSection } from "@/design/menu";
import { shellLine } from "@/shown/shell";
import { useOwnerName } from "./owner-label";
import { useIsOwn } from "./use-hub";

type Resume = NonNullable<SessionItem["resume"]>;

export function ResumeElsewhere({ session, resume }: { session: SessionItem; resume: Resume }) {
  const isOwn = useIsOwn(session);
  const owner = useOwnerName(session);
  const machine = session.ownership?.machine ?? "the machine where it ran";
  const where = isOwn || !owner ? machine : `${machine}, a machine of ${owner}`;
  const hasFiles = session.upload_level === "full" && !session.native;
  return (
    <>
      <MenuSection title={resume.folder ? `On ${where}, in ${resume.folder}` : `On ${where}`}>
        <Command line={shellLine(resume.command, resume.folder)} />
      </MenuSection>
      <MenuSection title="On another machine that is connected">
        {hasFiles ? (
          <>
            <p className="menu-problem">Get its log files first, then go on:</p>
            <Command line={shellLine(["turnlog", "hub", "pull", session.id])} />
            <Command line={shellLine(["turnlog", "resume", ownId(session)])} />
            {resume.folder && (
              <p className="menu-problem">
                If its folder is not {resume.folder} there, add --folder with the one that it is.
              </p>
            )}
          </>
        ) : (
          <p className="menu-problem">
            Its log files are not on this hub: it came at the upload level {session.upload_level ?? "none"}.{" "}
            {isOwn ? `On ${machine}` : `If ${owner ?? "its owner"} agrees, on ${machine}`}: turnlog hub level
            PROJECT full, then turnlog hub push. With that, whoever may read the session here sees its
            secrets.
          </p>
        )}
      </MenuSection>
    </>
  );
}

function Command({ line }: { line: string }) {
  return (
    <>
      <code className="menu-code">{line}</code>
      <CopyButton className="menu-item" label="Copy the command" text={() => line} />
    </>
  );
}

/** The id that a session has where it is pulled to: a hub may have put that of a person or a machine behind it. */
function ownId({ id }: SessionItem): string {
  return id.replace(/(~u-[0-9a-f]{16}(~[0-9]+)?|~m-[0-9a-f]{16})+$/, "");
}
