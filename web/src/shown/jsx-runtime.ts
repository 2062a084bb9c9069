/** How elements are made in the built page: as React makes them, with their texts revealed. */

import * as react from "react/jsx-runtime";
import { revealProps } from "./elements";

export type { JSX } from "react/jsx-runtime";
export { Fragment } from "react/jsx-runtime";

export const jsx: typeof react.jsx = (type, props, key) => react.jsx(type, revealProps(props), key);

export const jsxs: typeof react.jsxs = (type, props, key) => react.jsxs(type, revealProps(props), key);
