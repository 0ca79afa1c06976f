import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAddress, NOWHERE, parseAddress } from "../src/address.ts";

test("what is written is read again, whatever the name", () => {
  for (const node of ["Cell.fc.Dense.forward.0.output.0", "a&b=c#d%e f", "</script>", "\u202e\0", "__proto__", "層"]) {
    const address = { ...NOWHERE, node, x: [3, 70] as [number, number], q: "/a|b/ &", tab: "stack", colour: "worst", view: "trees" };
    assert.deepEqual(parseAddress(formatAddress(address)), { address, note: "" });
  }
  assert.equal(formatAddress(NOWHERE), "");
});

test("half of a surrogate pair does no harm", () => {
  assert.equal(parseAddress(formatAddress({ ...NOWHERE, node: "a\ud800b" })).address.node, "a\ufffdb");
});

test("what means nothing is ignored, and told", () => {
  for (const hash of ["#x=9-3", "#x=a", "#%E0%A4%A", "#nonsense", "#constructor=1", "#node", "#node=%zz", "#__proto__=1"]) {
    const { address, note } = parseAddress(hash);
    assert.deepEqual(address, NOWHERE, hash);
    assert.match(note, /mean nothing/, hash);
  }
});
