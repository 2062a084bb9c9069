/** What projects are called where several stand together: by name, with the folder above where two share one. */

export interface NamedPath {
  path: string;
  name: string;
}

export function projectLabels(projects: NamedPath[]): Map<string, string> {
  const counts = new Map<string, number>();
  // A project may be there several times, such as once a day.
  const known = new Map(projects.map((each) => [each.path, each]));
  for (const { name } of known.values()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return new Map(
    [...known.values()].map(({ path, name }) => [
      path,
      (counts.get(name) ?? 0) > 1 ? `${name} · ${folderAbove(path)}` : name,
    ]),
  );
}

/** The same for rows that are named after a project, some of which are of none. */
export function labelsOfRows(
  rows: { name: string | null; label: string | null }[],
): Map<string | null, string> {
  return projectLabels(
    rows.flatMap(({ name, label }) => (name === null ? [] : [{ path: name, name: label ?? name }])),
  );
}

function folderAbove(path: string): string {
  return path.replace(/[/\\][^/\\]*$/, "") || path;
}
