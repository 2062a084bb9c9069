/** Taking the line numbers out of what a reading tool printed ("   12→code", "12\tcode", "12: code", "00012| code"). */

export interface NumberedLines {
  numbers: string[];
  code: string;
  /** What follows the numbered lines: reminders and remarks. */
  rest: string;
}

const NUMBERED = /^ *(\d+)(?:→|\t)(.*)$/;

/** Also written by other programs (`grep -n`): taken for numbers only where they count on. */
const COUNTED = /^ *0*(\d+)(?:: ?|\| ?)(.*)$/;

/** Null when the text does not start with numbered lines. */
export function splitNumbered(text: string): NumberedLines | null {
  const lines = text.split("\n");
  return split(lines, NUMBERED, false) ?? split(lines, COUNTED, true);
}

function split(lines: string[], pattern: RegExp, counting: boolean): NumberedLines | null {
  const numbers: string[] = [];
  const code: string[] = [];
  for (const line of lines) {
    const match = pattern.exec(line);
    if (!match) break;
    if (counting && numbers.length > 0 && Number(match[1]) !== Number(numbers.at(-1)) + 1) break;
    numbers.push(match[1] ?? "");
    code.push(match[2] ?? "");
  }
  if (numbers.length === 0 || (counting && numbers.length < Math.min(2, lines.length))) return null;
  return { numbers, code: code.join("\n"), rest: lines.slice(numbers.length).join("\n").trim() };
}
