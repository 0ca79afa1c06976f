import assert from "node:assert/strict";
import { test } from "node:test";
import { filterNames, guardedExpression } from "../src/filter.ts";
import { ALL } from "../src/page.ts";
import { narrowed } from "../src/rows.ts";
import { modelOf } from "./pages.ts";

const model = () => modelOf([
  { name: "Cell.layers.0.norm.LayerNorm.forward.0", golden: "Module.blocks.0.input_norm.LayerNorm.forward.0", flags: 7, values: [{ slot: "input.0" }, { slot: "output.0" }] },
  { name: "Functional.relu.0.forward", values: [{ slot: "input.0" }, { slot: "output.0" }] },
  { name: "Functional.relu.0.backward", flags: 11, values: [{ slot: "output.0", flags: 35 }] },
]);

test("words must all occur, in the entry, in the slot, across both, or in the golden's name", async () => {
  const passing = async (text: string) => [...(filterNames(await model(), text).passes ?? [1, 1, 1, 1, 1])].flatMap((each, row) => (each ? [row] : []));
  assert.deepEqual(await passing(""), [0, 1, 2, 3, 4]);
  assert.deepEqual(await passing("NORM"), [0, 1]);
  assert.deepEqual(await passing("norm output"), [1]);
  assert.deepEqual(await passing("forward.0.out"), [1]);
  assert.deepEqual(await passing("forward.out"), [3]);
  assert.deepEqual(await passing("blocks.0"), [0, 1]);
  assert.deepEqual(await passing("/relu.*output/"), [3, 4]);
  assert.deepEqual(await passing("/^Cell|backward/"), [0, 1, 4]);
  assert.deepEqual(await passing("nothing"), []);
});

test("expressions that could take forever are refused, and told", async () => {
  for (const text of ["/(a+)+$/", "/(a|a)*b/", "/(.)\\1/", "/a*b*c*d*e/", `/${"a".repeat(201)}/`, "/(/", "/(?:x+){2,}/"]) {
    assert.equal(typeof guardedExpression(text), "string", text);
    const { passes, problem } = filterNames(await model(), text);
    assert.equal(passes, null);
    assert.ok(problem);
  }
  for (const text of ["/layers\\.(0|1)\\..*output/", "/[+*]+/", "/a{2}/"]) assert.ok(guardedExpression(text) instanceof RegExp, text);
});

test("menus narrow what passes", async () => {
  const made = await model();
  const rows = (facets: Partial<typeof ALL>) => [...narrowed(made, null, { ...ALL, ...facets }, null)];
  assert.deepEqual(rows({ phase: "backward" }), [4]);
  assert.deepEqual(rows({ kind: "module" }), [0, 1]);
  assert.deepEqual(rows({ kind: "output" }), [1, 3, 4]);
  assert.deepEqual(rows({ kind: "nonfinite" }), [4]);
  assert.deepEqual(rows({ outcome: 6 }), []);
});
