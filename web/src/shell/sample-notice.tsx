/** A notice that these sessions are the bundled sample and not the user's own. */

import type { StatusResponse } from "@/api/types";

export function SampleNotice({ status }: { status: StatusResponse | null }) {
  if (!status?.sample) return null;
  return (
    <p className="sample-notice" role="note">
      <strong>Sample.</strong> No agent's logs were found on this machine, so these are recorded sessions that
      come with turnlog. Use an agent and start turnlog again to see your own.
    </p>
  );
}
