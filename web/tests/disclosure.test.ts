import { expect, it, vi } from "vitest";
import { Disclosure } from "@/session/disclosure";

it("remembers each, and opens or folds all", () => {
  const disclosure = new Disclosure();
  expect(disclosure.isOpen("a", false)).toBe(false);
  expect(disclosure.isOpen("a", true)).toBe(true);
  disclosure.set("a", true);
  disclosure.setAll(false);
  expect(disclosure.isOpen("a", true)).toBe(false);
  disclosure.setAll(true);
  disclosure.set("b", false);
  expect([disclosure.isOpen("a", false), disclosure.isOpen("b", true)]).toEqual([true, false]);
});

it("goes back to each as it is by itself", () => {
  const disclosure = new Disclosure();
  disclosure.setAll(false);
  expect([disclosure.all(), disclosure.isOpen("a", true)]).toEqual([false, false]);
  disclosure.setAll(null);
  expect([disclosure.all(), disclosure.isOpen("a", true)]).toEqual([null, true]);
});

it("signs what begins alike, and nothing else", () => {
  const disclosure = new Disclosure();
  const before = disclosure.signature("branch/");
  disclosure.set("part/1", true);
  expect(disclosure.signature("branch/")).toBe(before);
  disclosure.set("branch/1", true);
  expect(disclosure.signature("branch/")).not.toBe(before);
});

it("opens records only one by one", () => {
  const disclosure = new Disclosure();
  disclosure.setAll(true);
  expect(disclosure.isOpenItself("r")).toBe(false);
  disclosure.set("r", true);
  expect(disclosure.isOpenItself("r")).toBe(true);
});

it("tells who listens, until they stop", () => {
  const disclosure = new Disclosure();
  const listener = vi.fn();
  const stop = disclosure.subscribe(listener);
  disclosure.set("a", true);
  stop();
  disclosure.set("a", false);
  expect(listener).toHaveBeenCalledTimes(1);
});
