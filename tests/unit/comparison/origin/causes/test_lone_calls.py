"""Modules without a counterpart are told behind an origin that lies right after them, and nowhere else."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.model import Origin, OriginKind
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(8)
X, HIDDEN, ACTIVE, WRONG, OUT, WRONG_OUT = (_RANDOM.standard_normal((4, 16)).astype(np.float32) for _ in range(6))
BLOCK, WIDEN, ACT = "Cell.mlp.MLP.forward.0", "Cell.mlp.up.Widen.forward.0", "Cell.mlp.up.act.GELU.forward.0"
NEXT = "Cell.next.Dense.forward.0"


def side(
    *,
    active: np.ndarray,
    given: np.ndarray,
    activates: bool,
    hidden: np.ndarray = HIDDEN,
    scaled: np.ndarray | None = None,
) -> Dump:
    """Two layers and a GELU between: a Cell of its own in a container (``activates``), or code of the MLP.

    ``scaled``: what the GELU takes in, where code that is not recorded makes it of ``hidden``.
    """
    calls = [("Cell.mlp.up.fc.Dense.forward.0", X, hidden)]
    if activates:
        calls += [(ACT, hidden if scaled is None else scaled, active), (WIDEN, X, active)]
    calls += [("Cell.mlp.down.Dense.forward.0", active, given), (BLOCK, X, given)]
    items = [
        each for name, taken, made in calls for each in (tensor("input.0", taken, name), tensor("output.0", made, name))
    ]
    made = dump(items)
    for name, entry in made.entries.items():
        inner = name.startswith("Cell.mlp.up.") and name != WIDEN and activates
        entry.parent = WIDEN if inner else BLOCK if name != BLOCK else None
    return made


GOLDEN = side(active=ACTIVE, given=OUT, activates=False)


def origins(target: Dump) -> list[Origin]:
    return list(compare_dumps(target, GOLDEN, Options()).origins)


def test_the_module_that_made_what_differs_of_what_agrees_is_told_before_the_container() -> None:
    first, second = origins(side(active=WRONG, given=WRONG_OUT, activates=True))
    assert (first.target, first.golden, first.kind) == (f"{ACT}.output.0", "", OriginKind.NOT_COMPARED)
    assert "no counterpart" in first.reason and "what it takes in agrees" in first.reason
    assert second.target == f"{BLOCK}.output.0"


def test_a_module_that_takes_in_what_was_not_compared_is_told_after_the_container() -> None:
    """Between the values that agree and the one that differs the target computes more than this call."""
    first, second = origins(side(active=WRONG, given=WRONG_OUT, activates=True, scaled=2 * HIDDEN))
    assert first.target == f"{BLOCK}.output.0"
    assert (second.target, second.golden, second.kind) == (f"{ACT}.output.0", "", OriginKind.NOT_COMPARED)
    assert "no counterpart" in second.reason


def test_a_healthy_module_without_a_counterpart_is_no_origin() -> None:
    assert origins(side(active=ACTIVE, given=OUT, activates=True)) == []


@pytest.mark.parametrize("hidden", [HIDDEN, WRONG])
def test_what_agrees_behind_it_leaves_it_out(hidden: np.ndarray) -> None:
    """The activation's result agrees, and an error before it or behind it is none of its own."""
    found = origins(side(active=ACTIVE, given=WRONG_OUT, activates=True, hidden=hidden))
    assert found and all(origin.kind != OriginKind.NOT_COMPARED for origin in found)


def projections(second: np.ndarray, given: np.ndarray, *, joined: bool) -> Dump:
    """An attention of two projections, one of which may be given out in another order, or of both in one layer."""
    names = [f"Cell.attn.{name}.Dense.forward.0" for name in ("p", "q")]
    made = {name: [tensor("input.0", X, name)] for name in (["Cell.attn.pq.Dense.forward.0"] if joined else names)}
    outputs = [np.concatenate((HIDDEN, second), 1)] if joined else [HIDDEN, second]
    for (name, items), values in zip(made.items(), outputs, strict=True):
        items.append(tensor("output.0", values, name, sketch=encode(sketch(values), values.dtype)))
    around = "Cell.attn.Attention.forward.0"
    items = [*chain.from_iterable(made.values()), tensor("input.0", X, around), tensor("output.0", given, around)]
    found = dump(items)
    for name in made:
        found.entries[name].parent = around
    return found


def test_layers_that_are_one_on_the_other_side_may_have_another_order() -> None:
    golden, mappings = projections(ACTIVE, OUT, joined=True), Mappings(layer={"Attention": {"p + q": "pq"}})
    rolled = projections(np.roll(ACTIVE, 1, -1), WRONG_OUT, joined=False)
    first, second = compare_dumps(rolled, golden, Options(mappings)).origins
    assert first.target == "Cell.attn.Attention.forward.0.output.0"
    assert (second.target, second.kind) == ("Cell.attn.p + q.Dense.forward.0.output.0", OriginKind.NOT_COMPARED)
    healthy = projections(ACTIVE, OUT, joined=False)
    assert compare_dumps(healthy, golden, Options(mappings)).origins == []


@pytest.mark.parametrize("given_it", [False, True])
def test_a_module_around_the_call_where_it_shows_is_told_unless_it_was_given_it(given_it: bool) -> None:
    def behind(taken: np.ndarray, *, enclosed: bool) -> Dump:
        """A layer inside a container of the MLP's, whose code may change what the layer takes in."""
        layer, around = "Cell.mlp.head.fc.Dense.forward.0", "Cell.mlp.head.Head.forward.0"
        given = OUT if taken is HIDDEN else WRONG_OUT
        values = {layer: (taken, given), around: (taken if given_it else X, given), BLOCK: (X, given)}
        names = [layer, *([around] if enclosed else []), BLOCK]
        made = dump([tensor(f"{state}.0", values[name][place], name) for name in names
                     for place, state in enumerate(("input", "output"))])  # fmt: skip
        made.entries[layer].parent = around if enclosed else BLOCK
        if enclosed:
            made.entries[around].parent = BLOCK
        return made

    found = compare_dumps(behind(WRONG, enclosed=True), behind(HIDDEN, enclosed=False), Options()).origins
    assert found[0].target == f"{BLOCK}.output.0"
    alone = [each.target for each in found if each.kind == OriginKind.NOT_COMPARED]
    assert alone == ([] if given_it else ["Cell.mlp.head.Head.forward.0.output.0"])


def test_the_module_whose_result_the_container_hands_on_is_told_before_it() -> None:
    def last(active: np.ndarray, *, activates: bool) -> Dump:
        """A layer, and a GELU whose result is that of the MLP."""
        values = {"Cell.mlp.fc.Dense.forward.0": (X, HIDDEN)} | ({ACT: (HIDDEN, active)} if activates else {})
        values[BLOCK] = (X, active)
        made = dump([tensor(f"{state}.0", values[name][place], name) for name in values
                     for place, state in enumerate(("input", "output"))])  # fmt: skip
        for name in values:
            made.entries[name].parent = BLOCK if name != BLOCK else None
        return made

    first, second = compare_dumps(last(WRONG, activates=True), last(ACTIVE, activates=False), Options()).origins
    assert (first.target, second.target) == (f"{ACT}.output.0", f"{BLOCK}.output.0")


def test_the_module_whose_result_stands_crosswise_among_the_operands_is_told_first() -> None:
    """``act(x) + x`` beside ``x + act(x)``: of one that is wrong neither order of the operands agrees."""
    add = "Tensor.__add__.0.forward"

    def residual(active: np.ndarray, *, activates: bool) -> Dump:
        items = [
            tensor("input.0", X, BLOCK.replace("MLP", "Block")),
            tensor("output.0", X, BLOCK.replace("MLP", "Block")),
        ]
        if activates:
            items += [tensor("input.0", X, ACT), tensor("output.0", active, ACT)]
        operands = (active, X) if activates else (X, active)
        items += [tensor(f"input.{place}", each, add) for place, each in enumerate(operands)]
        return dump([*items, tensor("output.0", X + active, add)])

    small = np.float32(0.1) * ACTIVE
    found = compare_dumps(
        residual(np.float32(1.1) * small, activates=True), residual(small, activates=False), Options()
    )
    assert found.origins[0].target == f"{ACT}.output.0"
    assert "what it takes in agrees" in found.origins[0].reason


def test_what_stands_beside_another_value_does_not_agree() -> None:
    """A later layer takes in the result of the GELU, and gives out the same whatever that is."""
    target = side(active=WRONG, given=WRONG_OUT, activates=True)
    golden = side(active=ACTIVE, given=OUT, activates=False)
    for made, active in ((target, WRONG), (golden, ACTIVE)):
        made.entries |= dump([tensor("input.0", active, NEXT), tensor("output.0", OUT, NEXT)]).entries
    found = compare_dumps(target, golden, Options()).origins
    assert found[0].target == f"{ACT}.output.0"


def test_a_layer_without_a_counterpart_right_before_the_loss_is_told_with_it() -> None:
    """A head that the golden computes as a function: what it gives out is compared nowhere."""
    head, loss = "Cell.head.Dense.forward.0", "loss.0.debug"

    def side(number: float, *, module: bool) -> Dump:
        items = [tensor("input.0", X, BLOCK), tensor("output.0", HIDDEN, BLOCK)]
        items += [tensor("input.0", HIDDEN, head), tensor("output.0", number * OUT, head)] if module else []
        return dump([*items, tensor("debug", np.float32(number), loss)])

    first, second = compare_dumps(side(2.5, module=True), side(2.4, module=False), Options()).origins
    assert first.target == loss and "what was compared before it agrees" in first.reason
    assert (second.target, second.kind) == (f"{head}.output.0", OriginKind.NOT_COMPARED)
