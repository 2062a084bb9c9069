// @vitest-environment happy-dom

import { describe, expect, it } from "vitest";
import type { SearchHit } from "@/api/types";
import { anyOf, inOrder, stepFrom, wordsBegun } from "@/session/find/find-hits";
import { placesIn, rangesOf } from "@/session/find/find-marks";
import { following } from "@/session/page/jump-keys";
import { placeAt } from "@/session/place";

function hit(position: number, part = 0, marked = "Word"): SearchHit {
  const snippet = [
    { text: "a ", marked: false },
    { text: marked, marked: true },
  ];
  return {
    message_id: `m${position}`,
    position,
    part,
    field: "text",
    role: "user",
    tool_name: null,
    created_at: null,
    snippet,
    also_in: [],
  };
}

it("takes the last word for the beginning of one, unless it is quoted or ended", () => {
  expect(wordsBegun("make te")).toBe("make te*");
  expect(wordsBegun('"make test"')).toBe('"make test"');
  expect(wordsBegun('"make te')).toBe('"make te');
  expect(wordsBegun("te*")).toBe("te*");
  expect(wordsBegun("  ")).toBe("");
});

it("asks for any of the words where no part has all of them", () => {
  expect(anyOf("red green")).toBe("red OR green");
  expect(anyOf('title:shop "red green" -blue role:user x.y')).toBe('"red green" OR x.y');
  expect(anyOf("std::vector AND http://host")).toBe("std::vector OR http://host");
  expect(anyOf("red")).toBe("red");
});

it("puts hits in the order of the session, and names what was found once, the longest first", () => {
  const found = inOrder({
    hits: [hit(20, 1), hit(20, 0, "words"), hit(5, 0, "word")],
    cut: false,
    unindexed: 0,
  });
  expect(found.hits.map(({ position, part }) => [position, part])).toEqual([
    [5, 0],
    [20, 0],
    [20, 1],
  ]);
  expect(found.words).toEqual(["words", "word"]);
});

it("steps on from where one is, and around at the ends", () => {
  const hits = [hit(5), hit(20), hit(30)];
  expect(stepFrom(hits, null, 10, 1)).toBe(1);
  expect(stepFrom(hits, null, 99, 1)).toBe(0);
  expect(stepFrom(hits, 2, 0, 1)).toBe(0);
  expect(stepFrom(hits, 0, 0, -1)).toBe(2);
  expect(stepFrom([], null, 0, 1)).toBeNull();
});

describe("the places of words in a text", () => {
  const found = (text: string, ...words: string[]) =>
    placesIn(text, words).map(([start, end]) => text.slice(start, end));

  it("are found in any case, the longer of two that overlap", () => {
    expect(placesIn("Words and a WORD", ["words", "word"])).toEqual([
      [0, 5],
      [12, 16],
    ]);
    expect(found("İ Word", "word")).toEqual(["Word"]);
  });

  it("are whole words, except where a script has no borders between words", () => {
    expect(found("shared red, red2 (RED)", "red")).toEqual(["red", "RED"]);
    expect(found("全数据库里 a数据b", "数据")).toEqual(["数据", "数据"]);
    expect(found("x.a*b y", "a*b")).toEqual(["a*b"]);
  });

  it("may go over the end of a line", () => {
    expect(found("the very\n  last row", "very last row")).toEqual(["very\n  last row"]);
  });
});

it("goes to the nearest landmark beyond where one is", () => {
  const places = [placeAt(30), placeAt(10), placeAt(20)];
  expect(following(places, 10, 1)?.position).toBe(20);
  expect(following(places, 30, -1)?.position).toBe(20);
  expect(following(places, 30, 1)).toBeNull();
});

it("marks a word that colours cut in pieces, and none across blocks", () => {
  document.body.innerHTML =
    "<p>get<span>_last</span><b><i>_</i>row</b>()</p><pre><span>last</span></pre><div>row<br>last</div><p>row</p>";
  const marked = rangesOf(document.body, ["get_last_row", "last row", "row", "last"]).map(String);
  expect(marked).toEqual(["get_last_row", "last", "row", "last", "row"]);
});
