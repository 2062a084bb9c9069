/** The upload level of a session on a hub, and what is not there because of it. */

import type { SessionItem } from "@/api/types";

export type UploadLevel = NonNullable<SessionItem["upload_level"]>;

/** What has left the machine at each level. */
export const LEVELS: Record<UploadLevel, string> = {
  metrics: "numbers, times, models and names of tools; no title, path or word",
  redacted: "everything without secrets, images and log files",
  full: "everything, with log files byte for byte",
};

/** The level in a list, where it is one fact of many. */
export function LevelLabel({ session: { upload_level: level } }: { session: SessionItem }) {
  if (!level) return null;
  return (
    <span className="session-level" title={`Its machine sent ${LEVELS[level]}.`}>
      level {level}
    </span>
  );
}
