/** Taking the line numbers out of what a reading tool printed ("   12→code", "12\tcode"). */

export interface NumberedLines {
  numbers: string[];
  code: string;
  /** What follows the numbered lines: reminders and remarks. */
  rest: string;
}

const NUMBERED = /^ *(\d+)(?:→|\t)(.*)$/;

/** Null when the text does not start with numbered lines. */
export function splitNumbered(text: string): NumberedLines | null {
  const lines = text.split("\n");
  const numbers: string[] = [];
  const code: string[] = [];
  for (const line of lines) {
    const match = NUMBERED.exec(line);
    if (!match) break;
    numbers.push(match[1] ?? "");
    code.push(match[2] ?? "");
  }
  if (numbers.length === 0) return null;
  return { numbers, code: code.join("\n"), rest: lines.slice(numbers.length).join("\n").trim() };
}
