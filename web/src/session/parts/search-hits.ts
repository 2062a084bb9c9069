/** What a searching tool found, by file; null where its output is something else, which is then shown as it is. */

export interface FoundFile {
  path: string;
  hits: { line: number; text: string; context: boolean }[];
}

/** "src/a.py:12:code", "src/a.py-11-code" of context; a drive's colon belongs to the path. */
const HIT = /^((?:[A-Za-z]:)?[^\n:]+?)(?::(\d+):|-(\d+)-)(.*)$/;
/** Gemini CLI: "File: src/a.py", then "L12: code". */
const FILE_LINE = /^File: (.+)$/;
const LINE_HIT = /^L(\d+): ?(.*)$/;
const SEPARATOR = /^-{2,3}$/;
/** "Found 3 files", "Found 2 matches for pattern…": said by the tool, not found by it. */
const REMARK = /^(?:Found \d+|No (?:files|matches)|Directory listing|\(Results are truncated)/;
const PATH = /^(?:[\w.~@+-]*[/\\])?[^\s:<>|]*[\w)\]]+[/\\]?$/;

export interface SearchOutput {
  remarks: string[];
  files: FoundFile[];
}

export function parseHits(text: string): SearchOutput | null {
  const found: SearchOutput = { remarks: [], files: [] };
  for (const line of text.split("\n")) {
    if (line.trim() === "" || SEPARATOR.test(line)) continue;
    if (!take(found, line)) return null;
  }
  return found.files.length > 0 ? found : null;
}

function take(found: SearchOutput, line: string): boolean {
  if (REMARK.test(line)) return found.remarks.push(line) > 0;
  const hit = HIT.exec(line);
  if (hit) {
    const number = Number(hit[2] ?? hit[3]);
    fileOf(found, hit[1] ?? "").hits.push({
      line: number,
      text: hit[4] ?? "",
      context: hit[2] === undefined,
    });
    return true;
  }
  const path = FILE_LINE.exec(line)?.[1] ?? (PATH.test(line.trim()) ? line.trim() : null);
  if (path !== null) return found.files.push({ path, hits: [] }) > 0;
  const inFile = LINE_HIT.exec(line);
  const last = found.files.at(-1);
  if (!inFile || !last) return false;
  return last.hits.push({ line: Number(inFile[1]), text: inFile[2] ?? "", context: false }) > 0;
}

function fileOf(found: SearchOutput, path: string): FoundFile {
  const last = found.files.at(-1);
  const known = last?.path === path ? last : found.files.find((file) => file.path === path);
  if (known) return known;
  const made: FoundFile = { path, hits: [] };
  found.files.push(made);
  return made;
}

/** "12 matches in 3 files", "3 files". */
export function summaryOf({ files }: SearchOutput): string {
  const hits = files.flatMap((file) => file.hits).filter((hit) => !hit.context).length;
  const inFiles = `${files.length} ${files.length === 1 ? "file" : "files"}`;
  return hits === 0 ? inFiles : `${hits} ${hits === 1 ? "match" : "matches"} in ${inFiles}`;
}
