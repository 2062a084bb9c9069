/** What every section of the team's page is given. */

import type { Me } from "./schema";

export interface SectionProps {
  me: Me;
  isAdmin: boolean;
}
