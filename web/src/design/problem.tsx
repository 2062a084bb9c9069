/** That something could not be shown, and what can be done. */

import type { ReactNode } from "react";
import { Link } from "wouter";
import { ApiError } from "@/api/client";

interface ProblemBoxProps {
  title: string;
  /** Whether it replaces a whole page. */
  whole?: boolean;
  children: ReactNode;
}

export function ProblemBox({ title, whole = false, children }: ProblemBoxProps) {
  const Heading = whole ? "h1" : "h2";
  const box = (
    <div className="problem" role="alert">
      <Heading>{title}</Heading>
      {children}
    </div>
  );
  return whole ? <main className="page">{box}</main> : box;
}

interface ProblemProps {
  error: Error;
  what: string;
  /** What the user can change where the server refuses it: "This query". */
  asked?: string;
  whole?: boolean;
  /** More about what was not found. */
  children?: ReactNode;
}

export function Problem({ error, what, asked, whole = false, children }: ProblemProps) {
  const missing = isMissing(error);
  const title = missing
    ? `${what} was not found`
    : asked && isRefused(error)
      ? `${asked} cannot be used`
      : `${what} could not be loaded`;
  return (
    <ProblemBox title={title} whole={whole}>
      <p>{describeFailure(error)}</p>
      {missing && children}
      {missing && <AllSessions />}
    </ProblemBox>
  );
}

/** Whether the server knows nothing of it, or no more. */
export function isMissing(error: Error): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Whether the server cannot use what was asked for. */
function isRefused(error: Error): boolean {
  return error instanceof ApiError && error.status === 422;
}

/** The message of a failure; for a request without a response (a `TypeError` of fetch), the usual reason. */
export function describeFailure(error: Error): string {
  return error instanceof TypeError
    ? "turnlog does not answer. If it runs on this machine, start it with: turnlog serve"
    : sentence(error.message);
}

/** The message of an error as a sentence; an id or a name at its beginning stays as it is. */
function sentence(message: string): string {
  return message.replace(/^[a-z](?=[a-z]* )/, (letter) => letter.toUpperCase());
}

export function AllSessions() {
  return (
    <p>
      <Link href="/" className="link">
        All sessions
      </Link>
    </p>
  );
}
