"""Of a module call that one side alone makes nothing is lost where what it gives out is compared in other rows."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Outcome, Pair
from msprobe_ms.comparison.pairing.coverage import is_incomplete, unmatched_modules
from msprobe_ms.comparison.pairing.elsewhere import with_lone_parameters
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.pairing.shares import lone_values, shares_of
from msprobe_ms.comparison.reporting.facts import fact_lines
from msprobe_ms.comparison.reporting.profiles.own import ELSEWHERE
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.comparison.terms import TARGET
from msprobe_ms.dump.model import Dump, Item

_RANDOM = np.random.default_rng(2)
X, Y, Z, OTHER = (_RANDOM.standard_normal((3, 4)).astype(np.float32) for _ in range(4))


def call(name: str, taken: np.ndarray, given: np.ndarray) -> list[Item]:
    return [tensor("input.0", taken, name), tensor("output.0", given, name)]


def side(prefix: str, *more: list[Item]) -> Dump:
    """Two layers that both sides have, and more."""
    layers = [*call(f"{prefix}.a.Layer.forward.0", X, Y), *call(f"{prefix}.b.Layer.forward.0", Y, Z)]
    return dump([*layers, *(item for items in more for item in items)], "mindspore" if prefix == "Cell" else "pytorch")


def paired(ours: list[Item], theirs: list[Item]) -> list[Pair]:
    return pair(side("Cell", ours), side("Module", theirs), Mappings())


WRAPPER = call("Cell.wrapper.Sequential.forward.0", X, Z)
IDENTITY = call("Module.drop.Dropout.forward.0", Y, Y)


def test_wrappers_and_what_hands_on_its_input_are_not_missed() -> None:
    pairs = paired(WRAPPER, IDENTITY)
    assert unmatched_modules(pairs) == ([], [])
    assert not is_incomplete(pairs)
    assert [each.how for each in pairs if not each.matched] == ["elsewhere", "elsewhere"]
    shares = shares_of(pairs)
    assert (shares.modules, shares.elsewhere) == ((2, 3), (["wrapper"], ["drop"]))
    assert lone_values(pairs) == ({"Cell.wrapper.Sequential": 2}, {"Module.drop.Dropout": 2})


def test_one_with_parameters_of_its_own_is_named_all_the_same() -> None:
    """A scale of ones hands on what it takes in, until it is trained."""
    scale = "Cell.scaled.Scale.forward.0"
    ones = tensor("parameters.scale", np.ones(4, np.float32), scale)
    root = [*call("Cell.Net.forward.0", X, Z), tensor("parameters.position", X, "Cell.Net.forward.0")]
    target, golden = side("Cell", [*call(scale, Y, Y), ones], root), side("Module", IDENTITY)
    comparison = compare_dumps(target, golden, Options())
    assert with_lone_parameters(comparison.pairs) == [(TARGET, "scaled")]
    line = "modules without a counterpart of which the outputs were compared, but not the parameters: scaled (target)"
    assert line in fact_lines(Outcome("", target, golden, comparison, []))


def with_weight(name: str, given: np.ndarray) -> list[Item]:
    return [*call(name, Y, given), tensor("parameters.weight", OTHER, name)]


def test_parameters_that_both_sides_have_left_are_missed() -> None:
    """The last layer of a head gives out what the head does; only its parameters and their gradients tell it."""
    ours, theirs = with_weight("Cell.last.Dense.forward.0", Z), with_weight("Module.out.Linear.forward.0", Z)
    pairs = paired(ours, theirs)
    assert unmatched_modules(pairs) == (["Cell.last.Dense.forward.0"], ["Module.out.Linear.forward.0"])
    assert is_incomplete(pairs)
    gradients = "Cell.last.Dense.parameters_grad.0"
    by_gradient = [*call("Cell.last.Dense.forward.0", Y, Z), tensor("parameters_grad.weight", OTHER, gradients)]
    assert is_incomplete(paired(by_gradient, theirs))
    alone = [*with_weight("Cell.last.Dense.forward.0", 2 * OTHER)]
    assert len(unmatched_modules(paired(alone, theirs))[1]) == 1, "also where the other one gives out something else"


def test_parameters_that_one_side_has_left_have_nothing_to_be_compared_with() -> None:
    ours = with_weight("Cell.last.Dense.forward.0", Z)
    assert unmatched_modules(paired(ours, IDENTITY)) == ([], [])
    theirs = side("Module", with_weight("Module.out.Linear.forward.0", Z))
    settled = pair(side("Cell", ours), theirs, Mappings(layer={"TopLayer": {"last": "unmatched"}}))
    assert unmatched_modules(settled) == ([], [])


def test_what_computes_something_else_is_missed() -> None:
    pairs = paired(call("Cell.scaled.Scale.forward.0", Y, OTHER), call("Module.extra.Layer.forward.0", Y, 2 * OTHER))
    assert unmatched_modules(pairs) == (["Cell.scaled.Scale.forward.0"], ["Module.extra.Layer.forward.0"])
    assert is_incomplete(pairs)


def test_one_of_several_results_that_is_compared_nowhere_is_missed() -> None:
    wrapper = [*WRAPPER, tensor("output.1", OTHER, WRAPPER[0].entry)]
    assert unmatched_modules(paired(wrapper, []))[0] == ["Cell.wrapper.Sequential.forward.0"]


def test_a_tensor_without_a_counterpart_is_compared_nowhere() -> None:
    """Two calls of one side alone hand a tensor on to each other."""
    ours = [*call("Cell.one.Layer.forward.0", Y, OTHER), *call("Cell.two.Identity.forward.0", OTHER, OTHER)]
    assert len(unmatched_modules(paired(ours, []))[0]) == 2


@pytest.mark.parametrize("values", [np.zeros((3, 4), np.float32), np.array([], np.float32)])
def test_a_tensor_of_one_number_is_not_known_again(values: np.ndarray) -> None:
    ours, theirs = (call(f"{prefix}.zero.Layer.forward.0", Y, values) for prefix in ("Cell", "Module"))
    alone = call("Cell.alone.Layer.forward.0", Y, values)
    assert unmatched_modules(paired([*ours, *alone], theirs))[0] == ["Cell.alone.Layer.forward.0"]


def test_a_fault_in_a_wrapper_is_seen_by_who_takes_its_result_and_told_of_the_wrapper() -> None:
    wrong = call("Cell.wrapper.Sequential.forward.0", X, 1.1 * Y)
    target = dump([*call("Cell.a.Layer.forward.0", X, Y), *wrong, *call("Cell.b.Layer.forward.0", 1.1 * Y, OTHER)])
    comparison = compare_dumps(target, side("Module"), Options())
    assert comparison.verdict == "divergent"
    wrapper, seen = comparison.origins
    assert wrapper.target == "Cell.wrapper.Sequential.forward.0.output.0"
    assert seen.target == "Cell.b.Layer.forward.0.input.0"


def test_the_report_says_so() -> None:
    comparison = compare_dumps(side("Cell", WRAPPER), side("Module"), Options())
    assert comparison.verdict == "consistent"
    assert {row.reason for each in comparison.pairs if not each.matched for row in each.rows} == {ELSEWHERE}
