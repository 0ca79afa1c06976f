import assert from "node:assert/strict";
import { test } from "node:test";
import { agreeing, figure, level, printable, short, shortened } from "../src/text.ts";

test("what is not printable is shown as its escape, as in Python", () => {
  assert.equal(printable("fc\x1b[31m.\u202ecod\n2"), "fc\\x1b[31m.\\u202ecod\\n2");
  assert.equal(printable("a b\t\u00a0\u200b\u2028"), "a b\\t\\xa0\\u200b\\u2028");
  assert.equal(printable("\ud800 \u{e0001} \0"), "\\ud800 \\U000e0001 \\x00");
  assert.equal(printable("層.𝐱.é <b>"), "層.𝐱.é <b>");
});

test("long texts keep their beginning and their end", () => {
  const shown = shortened(`begin${"x".repeat(1e6)}end`);
  assert.ok(shown.length <= 301 && shown.startsWith("begin") && shown.endsWith("end"));
});

test("numbers are short", () => {
  assert.deepEqual([0, 1, 415.2, 12_345, 4.75e-3, 1.4e-7, Infinity, NaN, 1e9].map(short),
    ["0", "1", "415", "12\u202f345", "0.00475", "1.4e-7", "∞", "NaN", "1.0e9"]);
});

test("a figure is the shortest decimal of the same 32-bit float", () => {
  for (const value of [1, 0.1, 1 / 3, 116.70597, 16777216, 1e-45, 3.4028235e38, -2.5e-9, 123456.79].map(Math.fround)) {
    assert.equal(Math.fround(Number(figure(value))), value);
  }
  assert.deepEqual([-0, NaN, -Infinity, Math.fround(0.1), 100].map(figure), ["-0", "nan", "-inf", "0.1", "100"]);
});

test("equal digits are counted from the left, where they weigh the same", () => {
  assert.equal(agreeing("110.32398", "110.85072"), 4);
  assert.equal(agreeing("3.5", "3.5"), 3);
  assert.equal(agreeing("10.1", "1.01"), 0);
  assert.equal(agreeing("1.37e-9", "1.37e-10"), 0);
});

test("figures of one magnitude become equally long", () => {
  assert.deepEqual(level("0.25", "0.125").map((each) => each.length), [5, 5]);
  assert.deepEqual(level("1", "1.25").map((each) => each.length), [4, 4]);
  assert.deepEqual(level("1e-9", "nan"), ["1e-9", "nan"]);
});
