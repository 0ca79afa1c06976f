import assert from "node:assert/strict";
import { test } from "node:test";
import { bits, Columns, fromBase64, NO_NUMBER, undelta, unshuffle } from "../src/data.ts";
import { Figures } from "../src/figures.ts";
import { Made, modelOf } from "./pages.ts";

test("numbers of several chunks come back", async () => {
  const made = new Made();
  const numbers = Uint32Array.from({ length: 150_000 }, (_, i) => (i * 2_654_435_761) >>> 0);
  made.add("a", numbers, { transform: "delta" });
  assert.deepEqual(await made.decoder().numbers("a"), numbers);
});

test("floats come back bit by bit: NaN, no number, the zeros, infinities, denormals", async () => {
  const made = new Made();
  const floats = new Float32Array([0, -0, Infinity, -Infinity, NaN, 1e-45, 3.4e38, 1]);
  bits(floats)[7] = NO_NUMBER;
  made.add("a", floats);
  const back = await made.decoder().numbers<Float32Array>("a");
  assert.deepEqual([...bits(back)], [...bits(floats)]);
});

test("what stands beside another column is its bits where they differ", async () => {
  const made = new Made();
  made.add("golden", new Float32Array([1, 2, NaN]));
  const target = new Float32Array([1, 3, -0]), mixed = new Float32Array(target);
  bits(new Float32Array([1, 2, NaN])).forEach((each, i) => (bits(mixed)[i] ^= each));
  made.add("target", mixed, { transform: "xor:golden" });
  assert.deepEqual([...bits(await made.decoder().numbers<Float32Array>("target"))], [...bits(target)]);
});

test("empty columns, columns of one", async () => {
  const made = new Made();
  made.add("none", new Float32Array(0));
  made.add("one", new Uint16Array([65_535]), { transform: "delta" });
  assert.equal((await made.decoder().numbers<Float32Array>("none")).length, 0);
  assert.deepEqual([...(await made.decoder().numbers("one"))], [65_535]);
});

test("a column is decoded once, and one that is not there is told", async () => {
  const made = new Made();
  made.json("a", [1, "x", null]);
  const columns = made.decoder();
  assert.equal(columns.json("a"), columns.json("a"));
  await assert.rejects(columns.numbers("b"), /no column b/);
});

test("a column that is too short is told", async () => {
  const made = new Made();
  made.add("a", new Uint8Array(3));
  made.columns.a.length = 4;
  await assert.rejects(made.decoder().numbers("a"), /3 numbers, not 4/);
});

test("names of columns are never looked up in an object", () => {
  assert.equal(new Columns({}, () => "").has("constructor"), false);
  assert.equal(new Columns({}, () => "").has("__proto__"), false);
});

test("the parts of the decoding", () => {
  assert.deepEqual([...unshuffle(new Uint8Array([1, 2, 3, 4]), 2)], [1, 3, 2, 4]);
  const numbers = new Uint16Array([5, 65_535, 1]);
  undelta(numbers);
  assert.deepEqual([...numbers], [5, 4, 5]);
  assert.deepEqual([...fromBase64("AQID")], [1, 2, 3]);
});

test("figures stand for the rows that have them", async () => {
  const made = new Made();
  made.add("figure_rows", new Uint32Array([2, 5, 9]), { transform: "delta" });
  for (const name of ["max", "min", "mean", "norm"]) made.add(`target_${name}`, new Float32Array([1, 2, 1]));
  const { index } = await modelOf([]);
  const figures = await Figures.load({ ...index, kind: "dump" }, made.decoder());
  assert.deepEqual([0, 2, 5, 9, 10].map((row) => figures.place(row)), [-1, 0, 1, 2, -1]);
  assert.deepEqual(figures.equals("target", 2), [9]);
  assert.equal(figures.value("target_max", 3), null);
});
