/** The title of the browser's tab. */

import { useEffect } from "react";

export function useTitle(title: string | null | undefined): void {
  useEffect(() => {
    document.title = title ? `${title} · turnlog` : "turnlog";
  }, [title]);
}
