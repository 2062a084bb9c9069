/** What people are called where several of them are in one list. */

interface Named {
  id: string;
  name: string;
  email?: string | null;
}

/** Id -> name; where two have one name, with the address of mail, or else the id. */
export function labelsOf(people: readonly Named[]): Map<string, string> {
  const seen = new Map<string, number>();
  for (const { name } of people) seen.set(name, (seen.get(name) ?? 0) + 1);
  return new Map(
    people.map(({ id, name, email }) => [id, (seen.get(name) ?? 0) > 1 ? `${name} (${email || id})` : name]),
  );
}
