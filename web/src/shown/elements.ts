/**
 * What elements show, revealed. Every element of the page is made through this (`jsxImportSource`), so that no text of
 * a log can miss it. A component must not return a bare string: that is no element.
 */

import { reveal } from "./reveal";

/** Properties that people see, or that are read out to them. What is typed into fields stays as it is. */
const SEEN = ["title", "aria-label", "alt"];

/**
 * The properties of an element or a component with their texts revealed; the same object where nothing is hidden.
 * Those of components too: components of a library make elements without us.
 */
export function revealProps<Props>(props: Props): Props {
  const given = props as Record<string, unknown>;
  let shown = given;
  const set = (name: string, value: unknown) => {
    if (value !== given[name]) shown = { ...shown, [name]: value };
  };
  set("children", revealChildren(given.children));
  for (const name of SEEN) {
    const value = given[name];
    if (typeof value === "string") set(name, reveal(value));
  }
  return shown as Props;
}

function revealChildren(children: unknown): unknown {
  if (typeof children === "string") return reveal(children);
  if (!Array.isArray(children)) return children;
  const shown = children.map(revealChildren);
  return shown.some((child, index) => child !== children[index]) ? shown : children;
}
