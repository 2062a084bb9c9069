/** Whose a session is, on a hub. */

import type { SessionItem } from "@/api/types";
import { useIsHub, usePeople } from "./use-hub";

export function useOwnerName(session: SessionItem | undefined): string | null {
  return usePersonName(session?.ownership?.user);
}

/** What the person with this id is called; null on one's own machine, and until the people are known. */
export function usePersonName(user: string | null | undefined): string | null {
  const isHub = useIsHub();
  const people = usePeople();
  if (!isHub || !user || people.length === 0) return null;
  return people.find(({ id }) => id === user)?.name ?? user;
}

export function OwnerLabel({ session }: { session: SessionItem }) {
  const name = useOwnerName(session);
  if (!name) return null;
  const machine = session.ownership?.machine;
  return (
    <span className="session-owner" title="Whose session it is, and from which machine">
      {machine ? `${name} on ${machine}` : name}
    </span>
  );
}
