/** A button that loads something from the server and hands it to the browser: says when it is busy and why it failed. */

import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";

interface LoadButtonProps {
  className: string;
  load: () => Promise<void>;
  children: ReactNode;
}

export function LoadButton({ className, load, children }: LoadButtonProps) {
  const { mutate, isPending, error } = useMutation({ mutationFn: load });
  return (
    <>
      <button
        type="button"
        className={className}
        onClick={() => mutate()}
        disabled={isPending}
        aria-busy={isPending}
      >
        {children}
      </button>
      {error && <span role="alert"> Could not be loaded: {error.message}</span>}
    </>
  );
}
