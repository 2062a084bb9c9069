/** What projects are called where several stand together: by name, with the folder above where two share one. */

export interface NamedPath {
  path: string;
  name: string;
}

export function projectLabels(projects: NamedPath[]): Map<string, string> {
  const counts = new Map<string, number>();
  for (const { name } of projects) counts.set(name, (counts.get(name) ?? 0) + 1);
  return new Map(
    projects.map(({ path, name }) => [
      path,
      (counts.get(name) ?? 0) > 1 ? `${name} · ${folderAbove(path)}` : name,
    ]),
  );
}

function folderAbove(path: string): string {
  return path.replace(/[/\\][^/\\]*$/, "") || path;
}
