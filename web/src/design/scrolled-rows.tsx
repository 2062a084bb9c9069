/** The elements that hold the rows of a virtual list. */

import type { CustomContainerComponentProps } from "virtua";

/**
 * A `div` of rows that can be clicked while they scroll. virtua takes the pointer from its container from each scroll
 * event until 150 ms after the last: a click that begins or ends meanwhile would be lost, and lists scroll by themselves
 * while their rows are measured.
 */
export function ScrolledRows({ style, ...props }: CustomContainerComponentProps) {
  return <div {...props} style={{ ...style, pointerEvents: undefined }} />;
}

/** The same as an ordered list. */
export function ScrolledList({ style, ...props }: CustomContainerComponentProps) {
  return <ol {...props} style={{ ...style, pointerEvents: undefined }} />;
}
