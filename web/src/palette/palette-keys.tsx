/** Opens the palette. Its code is there from the start: who presses the key types on at once. */

import { useMemo, useState } from "react";
import { useKeys } from "@/shell/keys";
import { Palette } from "./palette";

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
  return open && <Palette onClose={() => setOpen(false)} />;
}
