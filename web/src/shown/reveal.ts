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

const IDEOGRAPHS = "\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";

const CONTROL = "\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f";

/** Marks of direction; what has no width; fillers; tags and forms of the character before. */
const UNSEEN =
  "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u206f" +
  "\\u180e\\u200b-\\u200d\\u2060-\\u2065\\ufeff\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}" +
  "\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u3164\\uffa0" +
  "\\u180b-\\u180d\\u180f\\ufe00-\\ufe0f\\u{e0000}-\\u{e0fff}";

/** Which of these stay. Text can be hidden in forms: behind nothing, behind each other, or behind letters. */
const NEEDED = new RegExp(
  [
    `(?<=[${JOINED_SCRIPTS}])[\\u200c\\u200d]`,
    `(?:(?<=[${EMOJI}])|(?<=[${EMOJI}]\\ufe0f))\\u200d(?=[${EMOJI}])`,
    `(?<=[#*0-9\\u00a1-\\u{10ffff}])(?<![${UNSEEN}])[\\ufe00-\\ufe0f]`,
    `(?<=[${IDEOGRAPHS}])[\\u{e0100}-\\u{e01ef}]`,
    "(?<=[\\u1820-\\u18aa])[\\u180b-\\u180d\\u180f]",
  ].join("|"),
  "uy",
);

/** One such character, or all of a flag of England, Scotland or Wales, which stays: the one use that tags have. */
const FOUND = new RegExp(
  `[${CONTROL}${UNSEEN}]` +
    "(?:(?<=\\u{1f3f4}[\\u{e0030}-\\u{e007a}])[\\u{e0030}-\\u{e0039}\\u{e0061}-\\u{e007a}]{2,5}\\u{e007f})?",
  "gu",
);

/** Looks for one much faster; most texts have none. */
const MAYBE_FOUND = new RegExp(`[${CONTROL}${UNSEEN}]`, "u");

/** The text with a sign for each such character: `⟨U+202E⟩`. */
export function reveal(text: string): string {
  if (!MAYBE_FOUND.test(text)) return text;
  return text.replace(FOUND, (found, offset: number) => {
    const code = found.codePointAt(0) ?? 0;
    if (found.length > String.fromCodePoint(code).length) return found;
    NEEDED.lastIndex = offset;
    return NEEDED.test(text) ? found : signOf(code);
  });
}

/** Whether a text has characters that nobody sees, or that turn the direction of a line. */
export function hides(text: string): boolean {
  return reveal(text) !== text;
}

/** No picture of a control character (`␛`): many fonts have none. */
function signOf(code: number): string {
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
