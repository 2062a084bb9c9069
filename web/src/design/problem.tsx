/** That something could not be loaded, and what can be done. */

import { Link } from "wouter";
import { ApiError } from "@/api/client";

export function Problem({ error, what }: { error: Error; what: string }) {
  const missing = error instanceof ApiError && error.status === 404;
  return (
    <div className="problem" role="alert">
      <h2>{missing ? `${what} is not in the store` : `${what} could not be loaded`}</h2>
      <p>
        {error instanceof ApiError ? error.message : "Is turnlog still running? Start it with: turnlog serve"}
      </p>
      {missing && (
        <p>
          <Link href="/" className="link">
            All sessions
          </Link>
        </p>
      )}
    </div>
  );
}
