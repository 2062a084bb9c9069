/** That what is shown is the bundled sample and nobody's own history. */

import type { StatusAnswer } from "@/api/types";

export function SampleNotice({ status }: { status: StatusAnswer | null }) {
  if (!status?.sample) return null;
  return (
    <p className="sample-notice" role="note">
      <strong>Sample.</strong> No agent's logs were found on this machine, so these are recorded sessions that
      come with turnlog. Use an agent and start turnlog again to see your own.
    </p>
  );
}
