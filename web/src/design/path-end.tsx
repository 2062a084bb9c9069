/** A path of which the end is seen where there is no room for all of it: there, two folders differ. */
export function PathEnd({ path, className = "" }: { path: string; className?: string }) {
  return (
    <span className={`path-end ${className}`.trim()} title={path}>
      <bdi dir="ltr">{path}</bdi>
    </span>
  );
}
