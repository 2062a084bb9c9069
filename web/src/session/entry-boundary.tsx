/** What cannot be drawn costs itself only, and is shown as the JSON it is. */

import { Component, type ReactNode } from "react";
import type { Json } from "@/api/types";
import { JsonCode } from "@/content/json-view";
import type { Entry } from "./entry";

interface EntryBoundaryProps {
  entry: Entry;
  children: ReactNode;
}

interface EntryBoundaryState {
  entry: Entry;
  failed: boolean;
}

export class EntryBoundary extends Component<EntryBoundaryProps, EntryBoundaryState> {
  override state: EntryBoundaryState = { entry: this.props.entry, failed: false };

  static getDerivedStateFromError(): Partial<EntryBoundaryState> {
    return { failed: true };
  }

  /** An entry that comes anew, with something else in it, is tried again. */
  static getDerivedStateFromProps(
    { entry }: EntryBoundaryProps,
    state: EntryBoundaryState,
  ): Partial<EntryBoundaryState> | null {
    return entry === state.entry ? null : { entry, failed: false };
  }

  override render(): ReactNode {
    if (!this.state.failed) return this.props.children;
    return (
      <figure className="box">
        <figcaption>This could not be drawn</figcaption>
        <JsonCode value={this.props.entry as unknown as Json} />
      </figure>
    );
  }
}
