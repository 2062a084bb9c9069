import { describe, expect, it } from "vitest";
import { addedLines, countChanges, diffOf } from "@/content/diff-lines";
import { isPatch, parsePatch } from "@/content/patches";
import { changesOf, recordedChanges } from "@/session/tool/tool-changes";
import { toolCall } from "./samples";

const texts = (lines: { kind: string; text: string }[]) =>
  lines.map(({ kind, text }) => `${kind[0]} ${text}`);

it("keeps a little of what stayed around a change", () => {
  const before = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  const after = before.with(10, "changed");
  const lines = diffOf(before.join("\n"), after.join("\n"));
  expect(lines.map(({ kind }) => kind)).toEqual([
    "gap",
    "same",
    "same",
    "same",
    "removed",
    "added",
    "same",
    "same",
    "same",
    "gap",
  ]);
  expect(lines[0]?.text).toBe("7 unchanged lines");
  expect(countChanges(lines)).toEqual({ added: 1, removed: 1 });
});

it("adds every line of a new file, numbered", () => {
  expect(addedLines("a\nb\n").map(({ text, after }) => [text, after])).toEqual([
    ["a", 1],
    ["b", 2],
  ]);
});

describe("a unified diff", () => {
  const text = `diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -3,3 +3,3 @@ def f():
 keep
--- not a header
+new
 end
@@ -20 +20,2 @@
 x
+y
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
`;

  it("is read file by file, with the numbers of its lines", () => {
    const [first, second, ...others] = parsePatch(text);
    expect(others).toEqual([]);
    expect([first?.path, first?.verb, second?.path, second?.verb]).toEqual([
      "src/a.py",
      "edit",
      "gone.txt",
      "delete",
    ]);
    expect(texts(first?.lines ?? [])).toEqual([
      "g def f():",
      "s keep",
      "r -- not a header",
      "a new",
      "s end",
      "g ",
      "s x",
      "a y",
    ]);
    expect(first?.lines[2]).toMatchObject({ before: 4 });
    expect(first?.lines.at(-1)).toMatchObject({ after: 21 });
  });

  it("may have no header at all", () => {
    expect(texts(parsePatch("@@ -1,2 +1,2 @@\n a\n-b\n+B\n")[0]?.lines ?? [])).toEqual(["s a", "r b", "a B"]);
  });

  it("may end in the middle of a hunk", () => {
    expect(texts(parsePatch("@@ -1,9 +1,9 @@\n a\n-b")[0]?.lines ?? [])).toEqual(["s a", "r b"]);
  });
});

it("reads the envelope that models write", () => {
  const patch = `*** Begin Patch
*** Update File: notes.txt
*** Move to: memo.txt
@@ class Notes
 alpha
-beta
+BETA
*** Add File: new.py
+x = 1
*** Delete File: old.py
*** End Patch`;
  expect(isPatch(patch)).toBe(true);
  const changes = parsePatch(patch);
  expect(changes.map(({ path, verb, movedTo }) => [path, verb, movedTo])).toEqual([
    ["notes.txt", "move", "memo.txt"],
    ["new.py", "create", undefined],
    ["old.py", "delete", undefined],
  ]);
  expect(texts(changes[0]?.lines ?? [])).toEqual(["g class Notes", "s alpha", "r beta", "a BETA"]);
});

it("takes no prose for a patch", () => {
  expect(isPatch("use --- and +++ and @@ as you like")).toBe(false);
  expect(parsePatch("--- a heading\nwords")).toEqual([]);
});

describe("what a call was asked to change", () => {
  const linesOf = (...fields: Parameters<typeof toolCall>) =>
    changesOf(toolCall({ kind: "edit", ...fields[0] })).map(({ path, lines }) => [path, texts(lines)]);

  it("is one replacement, or several in one file", () => {
    expect(linesOf({ input: { file_path: "a", old_string: "x", new_string: "y" } })).toEqual([
      ["a", ["r x", "a y"]],
    ]);
    expect(linesOf({ input: { filePath: "a", oldString: "x", newString: "" } })).toEqual([["a", ["r x"]]]);
    const edits = [
      { old_string: "x", new_string: "y" },
      { old_string: "p", new_string: "q" },
    ];
    expect(linesOf({ input: { file_path: "a", edits } })).toEqual([
      ["a", ["r x", "a y", "g ", "r p", "a q"]],
    ]);
  });

  it("is a whole file, or a patch as text or as a field", () => {
    expect(linesOf({ input: { path: "a", content: "one\ntwo\n" } })).toEqual([["a", ["a one", "a two"]]]);
    const patch = "*** Begin Patch\n*** Add File: b\n+1\n*** End Patch";
    expect(linesOf({ input_text: patch })).toEqual([["b", ["a 1"]]]);
    expect(linesOf({ input: { input: patch } })).toEqual([["b", ["a 1"]]]);
  });

  it("is blocks of lines to search and what replaces them, in the words of several agents", () => {
    const cline =
      "------- SEARCH\nx\n=======\ny\n+++++++ REPLACE\n\n------- SEARCH\np\n=======\n+++++++ REPLACE";
    expect(linesOf({ input: { path: "a", diff: cline } })).toEqual([["a", ["r x", "a y", "g ", "r p"]]]);
    const roo = "<<<<<<< SEARCH\n:start_line:2\n-------\nx\n=======\ny\nz\n>>>>>>> REPLACE";
    expect(linesOf({ input: { path: "a", diff: roo } })).toEqual([["a", ["r x", "a y", "a z"]]]);
    const gptme = "<<<<<<< ORIGINAL\nx\n=======\ny\n>>>>>>> UPDATED";
    expect(linesOf({ input: { path: "a", patch: gptme } })).toEqual([["a", ["r x", "a y"]]]);
    expect(linesOf({ input: { path: "a", search: "x\n", replace: "y\n" } })).toEqual([["a", ["r x", "a y"]]]);
    expect(linesOf({ input: { path: "a", diff: "------- SEARCH\nx\n" } })).toEqual([]);
  });

  it("is nothing where the input is not understood", () => {
    expect(linesOf({ input: { what: 1 } })).toEqual([]);
    expect(linesOf({ input: [1] })).toEqual([]);
    expect(linesOf({ input_text: "{broken" })).toEqual([]);
  });
});

describe("what really changed", () => {
  it("is Claude Code's patch, numbered where it stands in the file", () => {
    const hunk = { oldStart: 7, oldLines: 2, newStart: 8, newLines: 2, lines: [" a", "-b", "+B"] };
    const [change] = recordedChanges({ filePath: "/x/a.py", structuredPatch: [hunk] });
    expect(change?.path).toBe("/x/a.py");
    expect(change?.lines).toEqual([
      { kind: "same", text: "a", before: 7, after: 8 },
      { kind: "removed", text: "b", before: 8 },
      { kind: "added", text: "B", after: 9 },
    ]);
    expect(recordedChanges({ type: "create", filePath: "n", content: "1\n", structuredPatch: [] })).toEqual([
      { path: "n", verb: "create", lines: [{ kind: "added", text: "1", after: 1 }] },
    ]);
  });

  it("is Codex's list of files, each added, deleted or changed", () => {
    const changes = recordedChanges({
      changes: {
        "/w/n.txt": { type: "update", unified_diff: "@@ -1 +1 @@\n-a\n+b\n", move_path: "/w/m.txt" },
        "/w/new.py": { type: "add", content: "x\n" },
        "/w/old.py": { type: "delete", content: "y\n" },
      },
    });
    expect(changes.map(({ path, verb, lines }) => [path, verb, texts(lines)])).toEqual([
      ["/w/n.txt", "move", ["r a", "a b"]],
      ["/w/new.py", "create", ["a x"]],
      ["/w/old.py", "delete", ["r y"]],
    ]);
  });

  it("is a diff of Gemini CLI or OpenCode, under the whole path", () => {
    const diff = "--- n.txt\tCurrent\n+++ n.txt\tProposed\n@@ -1 +1 @@\n-a\n+b\n";
    expect(recordedChanges({ fileDiff: diff, filePath: "/w/n.txt" })[0]).toMatchObject({
      path: "/w/n.txt",
      verb: "edit",
    });
    expect(recordedChanges({ fileDiff: diff, filePath: "/w/n.txt", isNewFile: true })[0]?.verb).toBe(
      "create",
    );
    expect(recordedChanges({ filediff: { file: "/w/n.txt", patch: diff } })[0]?.path).toBe("/w/n.txt");
  });

  it("is unknown where no patch was recorded", () => {
    expect(recordedChanges({ output: "done", diff: "no patch" })).toEqual([]);
    expect(recordedChanges("done")).toEqual([]);
    expect(recordedChanges(undefined)).toEqual([]);
  });
});
