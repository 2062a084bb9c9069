/**
 * A page that fails never affects the frame around it, which shows what can be done. The usual reason is a newer turnlog,
 * whose server no longer has the pieces of the page that is open.
 */

import { Component, type ReactNode } from "react";
import { ProblemBox } from "@/design/problem";

interface PageBoundaryProps {
  /** Another page is another try. */
  location: string;
  children: ReactNode;
}

interface PageBoundaryState {
  location: string;
  error: Error | null;
}

export class PageBoundary extends Component<PageBoundaryProps, PageBoundaryState> {
  override state: PageBoundaryState = { location: this.props.location, error: null };

  static getDerivedStateFromError(error: Error): Partial<PageBoundaryState> {
    return { error };
  }

  static getDerivedStateFromProps(
    { location }: PageBoundaryProps,
    state: PageBoundaryState,
  ): Partial<PageBoundaryState> | null {
    return location === state.location ? null : { location, error: null };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <ProblemBox title="This page could not be shown" whole>
        <p>{error.message}</p>
        <p>
          <button type="button" className="button" onClick={() => window.location.reload()}>
            Reload
          </button>
        </p>
      </ProblemBox>
    );
  }
}
