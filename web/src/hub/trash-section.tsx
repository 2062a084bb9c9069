/** What one has deleted on a hub, and may take out again until it is forgotten. */

import { formatExact } from "@/format/time";
import { EndButton, HubList } from "./hub-list";
import { TRASH, trashPath } from "./paths";
import type { TrashedSession } from "./schema";

export function TrashSection() {
  return (
    <HubList<TrashedSession>
      title="Trash"
      path={TRASH}
      empty="Empty. The share menu of a session of yours moves it here."
      of={({ id }) => id}
      row={({ id, title, forgotten_at }) => (
        <>
          <span className="team-name">{title ?? id}</span>
          <span className="team-fact">will be forgotten on {formatExact(forgotten_at)}</span>
          <EndButton
            label="Take out of the trash"
            question="It is shown again to whom it was shown before. Links to it stay ended."
            path={trashPath(id)}
          />
        </>
      )}
    />
  );
}
