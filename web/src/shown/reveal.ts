/**
 * Text of logs as the page shows it: what nobody sees, and what turns the direction of a line, is made visible. It can
 * make a line read as something that it is not. Joiners stay where a script or an emoji is spelled with them. The rule
 * is that of `plain_text.py`, which leaves these characters out of a terminal.
 */

/** Arabic and its kin, Indic scripts, Mongolian: their spelling needs joiners (U+200C, U+200D). */
const JOINED_SCRIPTS =
  "\\u0600-\\u061b\\u061d-\\u06ff\\u0700-\\u074f\\u0750-\\u077f\\u07c0-\\u07ff\\u0840-\\u08ff\\ufb50-\\ufdff" +
  "\\ufe70-\\ufefc\\u0900-\\u0dff\\u0f00-\\u0fff\\u1000-\\u109f\\u1780-\\u17ff\\u1b00-\\u1bff\\ua800-\\uaaff" +
  "\\u{11000}-\\u{11fff}\\u1810-\\u18af";

const EMOJI = "\\u2190-\\u21ff\\u2300-\\u27bf\\u2b00-\\u2bff\\u{1f000}-\\u{1faff}";

const CONTROL = "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]";

/** Group 1 is a flag of England, Scotland or Wales, which stays: the one use that tags have. */
const HIDDEN = new RegExp(
  [
    "(\\u{1f3f4}[\\u{e0030}-\\u{e0039}\\u{e0061}-\\u{e007a}]{3,6}\\u{e007f})",
    CONTROL,
    "[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u206f]",
    "[\\u180e\\u200b\\u2060-\\u2065\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]",
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u3164\\uffa0]",
    `(?<![${JOINED_SCRIPTS}])\\u200c`,
    `(?<![${JOINED_SCRIPTS}${EMOJI}\\ufe0f])\\u200d`,
    `(?<=[${EMOJI}\\ufe0f])\\u200d(?![${EMOJI}])`,
  ].join("|"),
  "gu",
);

/** Looks for them much faster; most texts have none. */
const MAYBE_HIDDEN = new RegExp(
  `${CONTROL}|[\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f` +
    "\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]",
  "u",
);

/** The text with a sign for each such character: `⟨U+202E⟩`. */
export function reveal(text: string): string {
  if (!hides(text)) return text;
  return text.replace(HIDDEN, (character, flag?: string) => flag ?? signOf(character.codePointAt(0) ?? 0));
}

/** Whether a text may have characters that nobody sees, or that turn the direction of a line. */
export function hides(text: string): boolean {
  return MAYBE_HIDDEN.test(text);
}

/** No picture of a control character (`␛`): many fonts have none. */
function signOf(code: number): string {
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
