/** Opens the palette; its code comes when it is first wanted. */

import { lazy, Suspense, useMemo, useState } from "react";
import { useKeys } from "@/shell/keys";

const Palette = lazy(() => import("./palette"));

export function PaletteKeys() {
  const [open, setOpen] = useState(false);
  useKeys(
    useMemo(
      () => ({
        "Ctrl+k": (event: KeyboardEvent) => {
          event.preventDefault();
          setOpen(true);
        },
      }),
      [],
    ),
  );
  return (
    open && (
      <Suspense fallback={null}>
        <Palette onClose={() => setOpen(false)} />
      </Suspense>
    )
  );
}
