/** What became of messages the agent moved on from. Nothing is hidden because of it. */

import type { Fate } from "@/api/types";
import type { IconName } from "@/design/icon";

interface FateLabel {
  text: string;
  icon: IconName;
  /** Greyed: the conversation went on without it. */
  left: boolean;
}

export const FATES: Record<Exclude<Fate, "active">, FateLabel> = {
  compacted: { text: "Compacted later", icon: "compact", left: false },
  rewound: { text: "Rewound: the conversation went on from an earlier point", icon: "rewind", left: true },
  retracted: { text: "Retracted: the answer was generated again", icon: "rewind", left: true },
  superseded: { text: "Superseded by a later version", icon: "rewind", left: true },
  sidecar: { text: "Outside the conversation", icon: "record", left: true },
};

/** The same at the head of a stretch that shares the fate. */
export const BRANCHES: Record<Exclude<Fate, "active">, { text: string; icon: IconName }> = {
  ...FATES,
  rewound: { text: "Abandoned branch", icon: "branch" },
  retracted: { text: "Retracted: the answer was generated again", icon: "rewind" },
  superseded: { text: "Superseded by a later version", icon: "rewind" },
};

export function isLeft(fate: Fate): boolean {
  return fate !== "active" && FATES[fate].left;
}
