/**
 * Characters that turn the direction of what follows, made visible. In code and terminals they have no good use: they
 * make a line read as something that it does not do.
 */

const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

export function revealTurns(text: string): string {
  return text.replace(TURNING, (character) => `⟨U+${character.codePointAt(0)?.toString(16).toUpperCase()}⟩`);
}
