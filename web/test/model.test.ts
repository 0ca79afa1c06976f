import assert from "node:assert/strict";
import { test } from "node:test";
import { bin, LOUD, QUIET, stretches, zoomed } from "../src/bins.ts";
import { aligned } from "../src/diff.ts";
import { Outcome } from "../src/model.ts";
import { buildTree, classOf, layerMapping, pathOf } from "../src/tree.ts";
import { modelOf } from "./pages.ts";

const origin = { call: 1, row: 1, kind: "computation", stage: null, reason: "", details: [], site: "", command: "" };

test("outcomes and error ratios follow from the columns", async () => {
  const model = await modelOf([{ name: "a", values: [
    { slot: "input.0", deviation: 2e-5, result: "agrees" }, { slot: "output.0", deviation: 1e-3, flags: 7, result: "origin" },
    { slot: "output.1", deviation: 1e-3, flags: 7, inherited: 1, result: "inherited" }, { slot: "output.2", deviation: null, result: "not compared" },
    { slot: "output.3", deviation: 1e-3, flags: 3 | 4 | 8, result: "agrees" }, { slot: "output.4", deviation: null, flags: 1, result: "unmatched" },
    { slot: "output.5", deviation: Infinity, flags: 7, tolerance: 0, result: "differs" }, { slot: "output.6", deviation: 0.5, flags: 19 },
  ] }]);
  assert.deepEqual([...model.outcome], [Outcome.AGREES, Outcome.ORIGIN, Outcome.INHERITED, Outcome.NOT_COMPARED, Outcome.EXPLAINED,
    Outcome.UNMATCHED, Outcome.DIFFERS, Outcome.AGREES]);
  assert.deepEqual([...model.ratio].map((each) => Math.round(each)), [2, 100, 100, NaN, 100, NaN, Infinity, 0]);
  assert.equal(model.tellingRow(0), 1);
});

test("outcomes of other tables follow from the flags", async () => {
  const model = await modelOf([{ name: "a", values: [{ slot: "x", flags: 7, result: "error" }, { slot: "y", flags: 7, inherited: 1, result: "warning" }, { slot: "z", result: "pass" }] }]);
  assert.deepEqual([...model.outcome], [Outcome.DIFFERS, Outcome.INHERITED, Outcome.AGREES]);
});

test("values and entries are found by name, whatever it is", async () => {
  const names = ["__proto__", "constructor", "a.0.forward", "toString"];
  const model = await modelOf(names.map((name) => ({ name })));
  names.forEach((name, call) => assert.deepEqual(model.find(name), { call, row: -1 }));
  assert.deepEqual(model.find("a.0.forward.output.0"), { call: 2, row: 2 });
  for (const name of ["hasOwnProperty", "a.0.forward.output.1", "", "."]) assert.equal(model.find(name), null);
});

test("an origin that is no call of the page does no harm", async () => {
  const model = await modelOf([{ name: "a" }, { name: "b" }], { origins: [{ ...origin, call: null, row: null }, origin] });
  assert.deepEqual([...model.originOfCall.keys()], [1]);
});

test("no maximum is lost, however many rows share a column", async () => {
  const values = Array.from({ length: 5000 }, (_, i) => ({ slot: "output.0", deviation: i === 3210 ? 0.7 : 1e-7, flags: i === 3210 ? 7 : 3, result: i === 3210 ? "differs" : "agrees" }));
  values[77].flags = 35;
  const model = await modelOf([{ name: "a", values }]);
  for (const width of [1, 7, 640, 9000]) {
    const bins = bin(model, model.ratio, 0, 5000, width);
    const column = Math.min(width - 1, Math.floor((3210 / 5000) * width));
    assert.equal(bins.worst[column], 3210);
    assert.ok(Math.abs(bins.high[LOUD][column] - Math.log10(7e4)) < 1e-3);
    assert.equal(bins.beyond.reduce((a, b) => a + b, 0), 1);
    if (width < 5000) assert.ok(Math.abs(bins.high[QUIET][column] + 2) < 1e-3);
  }
});

test("the parts of a step are forward, then backward", async () => {
  const model = await modelOf([{ name: "a" }, { name: "b" }, { name: "loss", flags: 35 }, { name: "c", flags: 11 }, { name: "d", flags: 27 }]);
  assert.deepEqual(stretches(model).map((each) => [each.phase, each.from, each.to]), [["forward", 0, 3], ["backward", 3, 5]]);
});

test("a zoom stays within the rows, around the selection", async () => {
  const model = await modelOf([{ name: "a", values: Array.from({ length: 1000 }, () => ({ slot: "x" })) }]);
  assert.deepEqual(zoomed(model, 990, null, 0.5), [500, 1000]);
  assert.deepEqual(zoomed(model, 600, [500, 1000], 0.5), [475, 725]);
  assert.equal(zoomed(model, 0, [0, 500], 2), null);
});

test("calls nest by what encloses them, a parent after its children too", async () => {
  const model = await modelOf([
    { name: "Cell.a.b.Dense.forward.0", parent: 2, flags: 7 }, { name: "Cell.a.Block.forward.0", flags: 7 },
    { name: "Functional.relu.0.forward", parent: 2 }, { name: "Cell.a.Block.backward.0", flags: 15 },
  ], { origins: [{ ...origin, call: 0, row: 0 }] });
  const { root, ofCall } = buildTree(model, "forward");
  assert.equal(root.leaves, 2);
  assert.deepEqual(ofCall.get(1)!.children.map((each) => each.label), ["b", "Functional.relu"]);
  assert.equal(ofCall.get(1)!.origins, 1);
});

test("without structure, dotted names nest; circles end", async () => {
  const flat = await modelOf([{ name: "Cell.a.b.Dense.forward.0", flags: 7 }, { name: "Cell.a.c.Dense.forward.0", flags: 7 }]);
  assert.deepEqual(buildTree(flat, "forward").root.children.map((each) => [each.label, each.children.length]), [["a", 2]]);
  const circle = await modelOf([{ name: "x", parent: 2 }, { name: "y", parent: 1 }, { name: "z", parent: 3 }]);
  assert.equal(buildTree(circle, "forward").root.leaves > 0, true);
});

test("two modules make lines of a layer mapping", async () => {
  const model = await modelOf([
    { name: "Cell.enc.0.EncoderLayer.forward.0", golden: "Module.blocks.0.Layer.forward.0", flags: 7 },
    { name: "Cell.enc.0.attention.Attention.forward.0", golden: null, flags: 5, parent: 1 },
    { name: "Module.blocks.0.self_attention.SelfAttention.forward.0", flags: 6, parent: 1 },
    { name: "Functional.relu.0.forward" },
  ]);
  assert.equal(layerMapping(model, 1, 2), "EncoderLayer:\n  attention: self_attention\n");
  assert.equal(layerMapping(model, 0, 0), "TopLayer:\n  enc.0: blocks.0\n");
  assert.equal(layerMapping(model, 3, 2), "");
  assert.equal(pathOf("Cell.a.b.Dense.forward.0"), "a.b");
  assert.equal(classOf("Cell.a.b.Dense.forward.0"), "Dense");
});

test("equal frames of two stacks stand in one line", () => {
  assert.deepEqual(aligned(["a", "x", "y", "m"], ["b", "x", "m"]), [["a", "b"], ["x", "x"], ["y", null], ["m", "m"]]);
  assert.deepEqual(aligned([], ["a"]), [[null, "a"]]);
});
