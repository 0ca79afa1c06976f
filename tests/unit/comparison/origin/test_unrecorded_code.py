"""An input that differs after calls without a counterpart: they are named, nothing is claimed of what was recorded."""

from __future__ import annotations

import numpy as np
import pytest
from compare_nodes import assert_short
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.comparison.terms import Mode
from msprobe_ms.dump.model import Dump, Item


def call(name: str, taken: float, given: float, parent: str | None = None) -> tuple[str, list[Item], str | None]:
    return name, [tensor("input.0", [taken, 1.0], name), tensor("output.0", [given, 1.0], name)], parent


def step(*calls: tuple[str, list[Item], str | None]) -> Dump:
    made = dump([item for _, items, _ in calls for item in items])
    for name, _, parent in calls:
        made.entries[name].parent = parent
    return made


def origins(target: Dump, golden: Dump) -> list[Origin]:
    found = compare_dumps(target, golden, Options()).origins
    for origin in found:
        assert_short(origin)
    return found


EMBED, NORM = "Cell.embed.Dense.forward.0", "Cell.norm.Dense.forward.0"


def renamed(name: str, calls: int, given: float) -> list[tuple[str, list[Item], str | None]]:
    inside = [call(f"Cell.{name}.l{number}.Dense.forward.0", 2.0, 2.0) for number in range(calls - 1)]
    return [*inside, call(f"Cell.{name}.Attention.forward.0", 2.0, given)]


def test_calls_without_a_counterpart_are_named_with_their_number() -> None:
    ours = step(call(EMBED, 1.0, 2.0), *renamed("attention", 3, 5.0), call(NORM, 5.0, 6.0))
    theirs = step(call(EMBED, 1.0, 2.0), *renamed("attn", 1, 4.0), call(NORM, 4.0, 5.0))
    alone, origin = origins(ours, theirs)
    assert (origin.target, alone.target) == (f"{NORM}.input.0", "Cell.attention.Attention.forward.0.output.0")
    assert origin.reason.endswith(": look at the calls without a counterpart right before it, or map them")
    assert origin.details[0] == (
        "calls without a counterpart come right before it: 3 in the target (the last "
        "Cell.attention.Attention.forward.0), 1 in the golden (Cell.attn.Attention.forward.0)"
    )


def test_calls_at_the_end_of_a_container_whose_results_cannot_be_compared_are_named() -> None:
    """The golden's gives out what the target's gives out in two parts, joined."""
    features, first = "Cell.features.Sequential.forward.0", "Cell.features.a.Dense.forward.0"

    def net(last: str, given: float, *parts: list[float]) -> Dump:
        inside = [call(first, 1.0, 2.0, features), call(f"Cell.features.{last}.forward.0", 2.0, given, features)]
        outputs = [tensor(f"output.{place}", part, features) for place, part in enumerate(parts)]
        container = features, [tensor("input.0", [1.0, 1.0], features), *outputs], None
        return step(*inside, container, call(NORM, given, given))

    def before_norm(*parts: list[float]) -> list[str]:
        target, golden = net("two.TwoPaths", 5.0, *parts), net("one.OnePath", 4.0, [4.0, 1.0])
        pairs = pair(target, golden, Mappings())
        measure(pairs, target, golden, Mode.STATISTICS)
        (norm,) = (each for each in pairs if each.target is not None and each.target.name == NORM)
        return [entry.name for entry in Evidence(pairs, list(golden.entries.values())).unrecorded.alone_before(norm)]

    assert before_norm([5.0], [1.0]) == ["Cell.features.two.TwoPaths.forward.0"]
    assert before_norm([4.0, 1.0]) == []


def test_calls_of_the_golden_alone_are_found_where_they_ran() -> None:
    ours = step(call(EMBED, 1.0, 2.0), call(NORM, 2.0, 6.0))
    theirs = step(call(EMBED, 1.0, 2.0), *renamed("attn", 1, 4.0), call(NORM, 4.0, 5.0), *renamed("late", 2, 5.0))
    (origin,) = origins(ours, theirs)
    assert origin.details[0].endswith("come right before it: 1 in the golden (Cell.attn.Attention.forward.0)")


def test_calls_before_the_last_pair_are_not_named() -> None:
    between = call("Cell.fc.Dense.forward.0", 3.0, 3.0)
    ours = step(call(EMBED, 1.0, 2.0), *renamed("attention", 3, 5.0), between, call(NORM, 5.0, 6.0))
    theirs = step(call(EMBED, 1.0, 2.0), *renamed("attn", 1, 4.0), between, call(NORM, 4.0, 5.0))
    (origin,) = origins(ours, theirs)
    assert "although no recorded value before it deviates: it comes from outside" in origin.reason


def test_calls_inside_of_it_are_not_before_it() -> None:
    block = "Cell.Block.forward.0"
    ours = step(call(EMBED, 1.0, 2.0), call("Cell.q.Dense.forward.0", 5.0, 5.0, block), call(block, 5.0, 6.0))
    theirs = step(call(EMBED, 1.0, 2.0), call("Cell.k.Dense.forward.0", 4.0, 5.0, block), call(block, 4.0, 5.0))
    (origin,) = origins(ours, theirs)
    assert origin.target == f"{block}.input.0"
    assert "although no recorded value before it deviates: it comes from outside" in origin.reason


def test_calls_without_a_counterpart_before_the_first_difference_inside_an_origin_are_named() -> None:
    block = "Cell.Block.forward.0"

    def block_with(name: str, between: float, given: float) -> Dump:
        attention = call(f"Cell.{name}.Attention.forward.0", 2.0, between, block)
        return step(
            call(EMBED, 2.0, 2.0, block), attention, call(NORM, between, between, block), call(block, 2.0, given)
        )

    alone, origin = origins(block_with("attention", 5.0, 6.0), block_with("attn", 4.0, 5.0))
    assert (origin.target, alone.target) == (f"{block}.output.0", "Cell.attention.Attention.forward.0.output.0")
    assert origin.reason.endswith(": look at the calls without a counterpart before norm")
    assert origin.details[0] == (
        f"inside it the difference shows first at {NORM}.input.0, right after calls without a counterpart: 1 in the "
        "target (Cell.attention.Attention.forward.0), 1 in the golden (Cell.attn.Attention.forward.0)"
    )


ORDER = "statistics do not show the order of elements: earlier values may differ in order only"


def difference_at(target: float, golden: float) -> str:
    """What is told of a NORM that takes in these, after EMBED gave 2.0 and FEED 3.0 on both sides."""
    feed = call("Cell.feed.Dense.forward.0", 2.0, 3.0)
    ours = step(call(EMBED, 1.0, 2.0), feed, call(NORM, target, 6.0))
    theirs = step(call(EMBED, 1.0, 2.0), feed, call(NORM, golden, 5.0))
    (origin,) = origins(ours, theirs)
    assert (origin.target, origin.kind) == (f"{NORM}.input.0", "outside")
    return origin.details[0]


def test_where_code_made_a_tensor_the_order_of_what_it_made_it_of_is_unknown() -> None:
    for numbers, asked in (((7.0, 8.0), True), ((3.0, 8.0), False)):
        ours, theirs = (step(call(EMBED, 1.0, 3.0), call(NORM, number, number - 2.0)) for number in numbers)
        (origin,) = origins(ours, theirs)
        assert (ORDER in origin.details) == asked


def test_it_says_between_which_calls_the_code_lies_that_was_not_recorded() -> None:
    assert difference_at(7.0, 8.0) == f"between Cell.feed.Dense.forward.0 (agrees) and {NORM}"


def test_a_side_that_hands_a_tensor_on_as_it_is_is_told_by_its_statistics() -> None:
    assert difference_at(3.0, 8.0) == (
        f"between Cell.feed.Dense.forward.0 (agrees) and {NORM}: the target passes it on unchanged, the golden does not"
    )
    assert difference_at(7.0, 2.0) == (
        f"between {EMBED} (agrees) and {NORM}: the golden passes it on unchanged, the target does not"
    )


def test_sides_that_take_it_from_two_places_are_told() -> None:
    assert difference_at(2.0, 3.0) == (
        f"the target takes it from {EMBED} (agrees), the golden from Cell.feed.Dense.forward.0 (agrees)"
    )


def test_the_first_call_of_a_module_is_behind_the_modules_input() -> None:
    block = "Cell.Block.forward.0"
    ours = step(call(EMBED, 1.0, 2.0), call(NORM, 7.0, 7.0, block), call(block, 2.0, 2.5))
    theirs = step(call(EMBED, 1.0, 2.0), call(NORM, 8.0, 8.0, block), call(block, 2.0, 2.0))
    (origin,) = origins(ours, theirs)
    assert origin.target == f"{block}.output.0"
    assert origin.details[0].endswith(f"first at {NORM}.input.0: between the input of {block} and {NORM}")


def test_calls_that_are_one_of_the_target_together_are_no_gap() -> None:
    """In backward the last of their forward calls, which the pair names, runs first."""

    def tensors(entry: str, inputs: list[float], outputs: list[float]) -> list[Item]:
        both = (("input", inputs), ("output", outputs))
        return [
            tensor(f"{state}.{place}", [number, 1.0], entry)
            for state, numbers in both
            for place, number in enumerate(numbers)
        ]

    linear, matmul, bias = "Functional.linear.0", "Primitive.m.MatMul.0", "Primitive.b.BiasAdd.0"
    before = "Cell.norm.Dense.backward.0"
    ours = [*tensors(f"{linear}.forward", [0, 1, 2], [9]), *tensors(f"{linear}.backward", [8], [3, 4, 5])]
    theirs = [*tensors(f"{matmul}.forward", [0, 1], [7]), *tensors(f"{bias}.forward", [7, 2], [9])]
    theirs += [*tensors(f"{bias}.backward", [8], [6, 5]), *tensors(f"{matmul}.backward", [6], [3, 4])]
    target = dump([*ours, *tensors(before, [40], [50])], "pytorch")
    (origin, *_) = origins(target, dump([*theirs, *tensors(before, [30], [40])]))
    assert origin.target == f"{before}.input.0"
    assert not any("without a counterpart" in each for each in (origin.reason, *origin.details))


BLOCK = "Cell.Block.forward.0"


def test_calls_without_a_counterpart_inside_an_origin_are_named_and_not_said_to_agree() -> None:
    inside = (call(EMBED, 2.0, 2.0, BLOCK), call("Cell.proj.Dense.forward.0", 2.0, 2.0, BLOCK))
    alone = [call(f"Functional.{name}.0.forward", 2.0, 3.0, BLOCK) for name in ("scale", "shift")]
    of_a_pair = call("Functional.linear.0.forward", 2.0, 2.0, EMBED)
    ours = step(of_a_pair, *inside, *alone, call(BLOCK, 2.0, 6.0))
    others = [call(f"Functional.{name}.0.forward", 2.0, 3.0, BLOCK) for name in ("mul", "roll")]
    theirs = step(*inside, *others, call(BLOCK, 2.0, 5.0))
    (origin,) = origins(ours, theirs)
    assert origin.target == f"{BLOCK}.output.0"
    assert origin.reason.endswith(": look at the calls inside it without a counterpart, or map them")
    assert origin.details[0] == (
        "inside it 2 calls with a counterpart agree; calls without a counterpart: 2 in the target (the first "
        "Functional.scale.0.forward), 2 in the golden (the first Functional.mul.0.forward)"
    )


def test_one_call_inside_an_origin_is_told_as_one() -> None:
    ours, theirs = (step(call(EMBED, 2.0, 2.0, BLOCK), call(BLOCK, 2.0, given)) for given in (6.0, 5.0))
    (origin,) = origins(ours, theirs)
    assert origin.reason.endswith(": look at its code before and after the call inside it")
    assert origin.details == ("the 1 call recorded inside it agrees",)


def test_two_outputs_of_one_call_taken_the_other_way_round() -> None:
    """Not "the target takes it from X, the golden from X"."""

    def side(taken: float) -> Dump:
        split = "Functional.split.0.forward"
        outputs = [tensor(f"output.{place}", [number, 1.0], split) for place, number in enumerate((3.0, 8.0))]
        return step(
            (split, [tensor("input.0", [2.0, 1.0], split), *outputs], None),
            call(NORM, taken, taken - 1.0),
        )

    (origin,) = origins(side(3.0), side(8.0))
    assert origin.details[0] == "the target takes output.0 of Functional.split.0.forward (agrees), the golden output.1"


RANDOM = np.random.default_rng(17)
X, MADE, TIME, EMBEDDED = (RANDOM.standard_normal((8, 16)) for _ in range(4))
NEXT, TWICE = "Cell.next.Part.forward.0", "Cell.time.b.Embedder.forward.0"


def drifted(*calls: tuple[str, dict[str, np.ndarray], str | None], by: float) -> Dump:
    """Calls after an embedding that has drifted by several tolerances, which may reach any of them."""
    time = {"input.0": X, "output.0": TIME * (1 + by / 10)}
    twice = {"input.0": time["output.0"], "output.0": EMBEDDED * (1 + by)}
    every = [("Cell.time.a.Embedder.forward.0", time, None), (TWICE, twice, None), *calls]
    items = [
        tensor(
            place,
            values.astype(np.float32),
            name,
            sketch=encode(sketch(values.astype(np.float32)), np.dtype(np.float32)),
        )
        for name, places, _ in every
        for place, values in places.items()
    ]
    made = dump(items)
    for name, _, parent in every:
        made.entries[name].parent = parent
    return made


@pytest.mark.parametrize(("factor", "found"), [(1.0, []), (1.0003, ["Cell.up.Block.forward.0.output.0"])])
def test_a_block_whose_result_the_golden_hands_on_as_a_call_inside_made_it_adds_nothing(
    factor: float, found: list[str]
) -> None:
    def side(factor: float, by: float) -> Dump:
        block, embedded = "Cell.up.Block.forward.0", EMBEDDED * (1 + by)
        inside = ("Cell.up.last.Part.forward.0", {"input.0": X, "output.0": MADE}, block)
        return drifted(inside, (block, {"input.0": X, "input.1": embedded, "output.0": factor * MADE}, None), by=by)

    assert [each.target for each in origins(side(factor, 5e-5), side(1.0, 0.0))] == found


@pytest.mark.parametrize(("factor", "found"), [(1.0, []), (1.0003, ["Cell.next.Part.forward.0.input.0"])])
def test_what_the_golden_hands_on_from_one_call_to_the_next_differs_by_no_more_than_it_did(
    factor: float, found: list[str]
) -> None:
    def side(factor: float, by: float) -> Dump:
        first = ("Cell.first.Part.forward.0", {"input.0": X, "output.0": MADE}, None)
        return drifted(first, ("Cell.next.Part.forward.0", {"input.0": factor * MADE, "output.0": X}, None), by=by)

    assert [each.target for each in origins(side(factor, 5e-5), side(1.0, 0.0))] == found


@pytest.mark.parametrize(("error", "found"), [(1e-7, []), (1e-4, ["Cell.fc.Dense.forward.0.output.0"])])
def test_a_drift_elsewhere_explains_nothing_of_a_layer_all_of_whose_inputs_were_compared(
    error: float, found: list[str]
) -> None:
    weight, rounding, noise = (RANDOM.standard_normal(shape) for shape in ((16, 16), (8, 16), (8, 16)))

    def side(error: float, by: float) -> Dump:
        block, name = "Cell.Block.forward.0", "Cell.fc.Dense.forward.0"
        taken = X + by / 10 * rounding
        values = {"input.0": taken, "parameters.weight": weight, "output.0": taken @ weight.T + 4 * error * noise}
        embedded = {"input.0": EMBEDDED * (1 + by), "output.0": MADE}
        return drifted((name, values, block), (block, embedded, None), by=by)

    assert [each.target for each in origins(side(error, 5e-5), side(0.0, 0.0))] == found


def test_a_tensor_that_is_handed_on_in_another_order_is_not_held_to_what_its_statistics_showed() -> None:
    """Windows of a picture: of two shapes only statistics are compared, of the windows all elements."""
    noise = RANDOM.standard_normal(MADE.shape)
    kept = np.ones(MADE.shape)
    kept.flat[[MADE.argmax(), MADE.argmin()]] = 0
    for along in (kept, kept * MADE):
        noise = kept * (noise - (noise * along).sum() / (along**2).sum() * along)

    def side(error: float, by: float, shape: tuple[int, ...], rounding: float) -> Dump:
        made = MADE + error * noise
        first = ("Cell.first.Part.forward.0", {"input.0": X, "output.0": made.reshape(shape)}, None)
        windows = made.reshape(2, 4, 2, 8).transpose(0, 2, 1, 3).reshape(4, 32)
        dumped = drifted(first, (NEXT, {"input.0": windows, "output.0": X}, None), by=by)
        taken, given = dumped.entries[NEXT].items
        assert taken.norm is not None
        dumped.entries[NEXT].items = [taken._replace(norm=float(taken.norm) * (1 + rounding)), given]
        return dumped

    assert origins(side(2e-5, 5e-5, (8, 16), rounding=1e-14), side(0.0, 0.0, (2, 4, 16), rounding=0.0)) == []
