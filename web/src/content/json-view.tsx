/** Any JSON, so that it can be read: an object as its fields, long strings with their own line breaks. */

import { Code } from "./code-block";
import "./json-view.css";
import type { Json } from "@/api/types";

export function JsonView({ value }: { value: Json }) {
  if (typeof value === "string")
    return (
      <pre className="json-text" tabIndex={0}>
        {value}
      </pre>
    );
  if (value === null || typeof value !== "object" || Array.isArray(value)) return <JsonCode value={value} />;
  return (
    <dl className="json-fields">
      {Object.entries(value).map(([name, field]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {typeof field === "string" ? (
              <pre className="json-text" tabIndex={0}>
                {field}
              </pre>
            ) : (
              <JsonCode value={field} />
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function JsonCode({ value }: { value: Json }) {
  return (
    <pre className="json-code" tabIndex={0}>
      <Code code={JSON.stringify(value, null, 2)} language="json" />
    </pre>
  );
}
