/** How to write a query, shown before the first one. */

const HINTS = [
  ["red green", "both words"],
  ['"red green"', "the phrase"],
  ["gre*", "what begins with it"],
  ["ECONNRESET snake_case a.b.c", "code as it is written"],
];

export function SearchHints() {
  return (
    <dl className="hints">
      {HINTS.map(([query, finds]) => (
        <div key={query}>
          <dt>{query}</dt>
          <dd>{finds}</dd>
        </div>
      ))}
    </dl>
  );
}
