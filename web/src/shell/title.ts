/** The title of the browser's tab. */

import { useEffect } from "react";
import { reveal } from "@/shown/reveal";

export function useTitle(title: string | null | undefined): void {
  useEffect(() => {
    document.title = title ? `${reveal(title)} · turnlog` : "turnlog";
  }, [title]);
}
