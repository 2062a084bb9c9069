/** Opens everything, then folds everything, then leaves each as it is by itself. */

import { Icon } from "@/design/icon";
import { useAll, useDisclosures } from "./disclosure";

const NEXT = new Map<boolean | null, { label: string; all: boolean | null }>([
  [null, { label: "Open all", all: true }],
  [true, { label: "Fold all", all: false }],
  [false, { label: "At a glance", all: null }],
]);

/** What pressing it once more would do. */
export function nextAll(all: boolean | null): { label: string; all: boolean | null } {
  return NEXT.get(all) ?? { label: "At a glance", all: null };
}

export function AllButton() {
  const disclosures = useDisclosures();
  const next = nextAll(useAll());
  return (
    <button type="button" className="button" onClick={() => disclosures.setAll(next.all)} title="Key: x">
      <Icon name="expand" size={14} /> <span>{next.label}</span>
    </button>
  );
}
