/** How elements are made by `npm run dev` and in tests: as React makes them, with their texts revealed. */

import * as react from "react/jsx-dev-runtime";
import { revealProps } from "./elements";

export type { JSX } from "react/jsx-dev-runtime";
export { Fragment } from "react/jsx-dev-runtime";

export const jsxDEV: typeof react.jsxDEV = (type, props, ...rest) =>
  react.jsxDEV(type, revealProps(props), ...rest);
