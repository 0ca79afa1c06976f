"""A parameter whose gradient one side alone has: frozen, detached, or not among the optimizer's weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compare_nodes import assert_short
from compare_parts import dump, tensor
from layer_dumps import normal

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.origin.causes.missing_gradient import MissingGradient
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.walk import Walk
from msprobe_ms.comparison.pairing.fused_modules import join_fused
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.comparison.terms import Mode
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import parse_entry

#: Two layers whose parameters differ, and constants that look all alike.
PARAMETERS: Mapping[str, Any] = {
    "Cell.a.Dense.weight": [0.5, -1.0, 2.0],
    "Cell.a.Dense.bias": [0.0, 0.0],
    "Cell.b.Dense.weight": [0.25, 3.0, -2.0],
    "Cell.b.Dense.bias": [0.0, 0.0],
}
ALL = tuple(PARAMETERS)


def recorded(
    gradients: Iterable[str], parameters: Mapping[str, Any] = PARAMETERS, gradient: Any = None, md5: bool = True
) -> Dump:
    """A step of the modules of ``parameters`` with gradients of some of them, each other than the rest."""
    changed: dict[str, Any] = {} if md5 else {"md5": None}
    items: list[Item] = []
    for name in parameters:
        module, _, parameter = name.rpartition(".")
        items.append(tensor(f"parameters.{parameter}", parameters[name], f"{module}.forward.0", **changed))
    for name in gradients:
        module, _, parameter = name.rpartition(".")
        values = gradient if gradient is not None else [float(1 + len(items)), -2.0]
        items.append(tensor(f"parameters_grad.{parameter}", values, f"{module}.parameters_grad.0", **changed))
    return dump(items)


def compared(target: Dump, golden: Dump) -> Comparison:
    comparison = compare_dumps(target, golden, Options())
    for origin in comparison.origins:
        assert_short(origin)
    return comparison


def names(target: Dump, golden: Dump) -> list[str]:
    return [origin.target for origin in compared(target, golden).origins if "frozen" in origin.reason]


def without(*lost: str) -> list[str]:
    return [name for name in ALL if name not in lost]


def same_gradients(kept: Iterable[str]) -> Dump:
    return recorded(kept, gradient=[1.0, -2.0])


def test_parameters_of_the_model_itself_are_told_by_their_names() -> None:
    parameters = {"Cell.Net.token": [1.0, 2.0], "Cell.Net.position": [3.0, 4.0], **PARAMETERS}
    target = recorded(ALL, parameters, gradient=[1.0, -2.0])
    (origin,) = compared(target, recorded(parameters, parameters, gradient=[1.0, -2.0])).origins
    assert origin.target == "Cell.Net.forward.0.parameters.token"
    assert origin.details == ("the same holds for position",)


def test_a_parameter_frozen_in_the_target_is_an_origin() -> None:
    comparison = compared(same_gradients(without("Cell.b.Dense.weight")), same_gradients(ALL))
    (origin,) = comparison.origins
    assert comparison.verdict == "divergent"
    assert (origin.target, origin.state) == ("Cell.b.Dense.forward.0.parameters.weight", "parameters_grad")
    assert origin.reason == (
        "the golden has a gradient of this parameter, the target none: is it frozen, detached or left out of the "
        "optimizer's weights?"
    )
    (row,) = [row for row in comparison.rows if row.target is not None and row.target.name == origin.target]
    assert (row.result, row.colour) == ("origin", "red")


def test_a_parameter_frozen_in_the_golden_is_one_too() -> None:
    (origin,) = compared(same_gradients(ALL), same_gradients(without("Cell.b.Dense.weight"))).origins
    assert origin.reason.startswith("the target has a gradient of this parameter, the golden none: ")


def test_a_wholly_frozen_module_is_one_origin_that_names_the_others() -> None:
    (origin,) = compared(same_gradients(ALL[:2]), same_gradients(ALL)).origins
    assert origin.target == "Cell.b.Dense.forward.0.parameters.weight"
    assert "the target none: " in origin.reason and origin.details == ("the same holds for b.bias",)


def test_where_no_gradients_were_recorded_none_is_missing() -> None:
    assert names(recorded([]), same_gradients(ALL)) == []


def test_where_all_gradients_are_zeros_all_are_missing_and_the_last_parameter_used_is_named() -> None:
    """A net detached right before its loss; a framework hands on zeros."""
    comparison = compared(recorded(ALL, gradient=[0.0, 0.0]), same_gradients(ALL))
    assert comparison.origins[0].target == "Cell.b.Dense.forward.0.parameters.weight"
    assert comparison.origins[0].kind == "missing gradient"
    assert names(same_gradients(ALL), recorded(ALL, gradient=[0.0, 0.0])) != []


def test_it_comes_before_gradients_of_which_a_part_is_missing_for_it() -> None:
    places = {"Cell.a.Dense.backward.0": [1.0, -2.0], "Cell.a.Dense.parameters_grad.0": [1.0, -2.0]}

    def side(part: float, kept: Iterable[str]) -> Dump:
        made = same_gradients(kept)
        for name, values in places.items():
            state = "input.0" if "backward" in name else "parameters_grad.weight"
            item = tensor(state, [part * value for value in values], name)
            made.entries[name] = Entry(name, parse_entry(name), [item])
        return made

    target = side(0.5, [name for name in ALL if "Cell.b" not in name])
    origins = compared(target, side(1.0, ALL)).origins
    assert origins[0].kind == "missing gradient"
    assert origins[0].target.startswith("Cell.b.Dense")
    assert any(origin.target.startswith("Cell.a.Dense") for origin in origins[1:])


def test_a_gradient_of_zeros_is_none() -> None:
    golden = same_gradients(without("Cell.b.Dense.bias"))
    zeros = tensor("parameters_grad.bias", np.zeros(2), "Cell.b.Dense.parameters_grad.0")
    golden.entries["Cell.b.Dense.parameters_grad.0"].items.append(zeros)
    assert names(same_gradients(without("Cell.b.Dense.bias")), golden) == []


def test_statistics_of_batch_norm_are_no_trained_parameters() -> None:
    parameters = {**PARAMETERS, "Cell.n.BatchNorm2d.moving_mean": [0.1, 0.7]}
    both = [*ALL, "Cell.n.BatchNorm2d.moving_mean"]
    assert names(recorded(ALL, parameters, [1.0, 2.0]), recorded(both, parameters, [1.0, 2.0])) == []


def test_a_parameter_without_a_twin_is_not_named() -> None:
    parameters = {**PARAMETERS, "Cell.a.Dense.scale": [4.0, 5.0]}
    extra = [*ALL, "Cell.a.Dense.scale"]
    assert names(same_gradients(ALL), recorded(extra, parameters, [1.0, -2.0])) == []


class TestTiedWeights:
    tied: Mapping[str, Any] = {**PARAMETERS, "Cell.head.Dense.weight": PARAMETERS["Cell.a.Dense.weight"]}

    def test_their_gradient_may_be_recorded_at_another_place(self) -> None:
        here, there = ["Cell.a.Dense.weight", *ALL[2:]], ["Cell.head.Dense.weight", *ALL[2:]]
        for md5 in (True, False):
            ours, theirs = (recorded(kept, self.tied, [1.0, 2.0], md5) for kept in (here, there))
            assert names(ours, theirs) == []

    def test_or_at_both(self) -> None:
        here, both = [*ALL], [*ALL, "Cell.head.Dense.weight"]
        assert names(recorded(here, self.tied, [1.0, 2.0]), recorded(both, self.tied, [1.0, 2.0])) == []

    def test_layers_that_begin_as_copies_are_not_tied(self) -> None:
        both = ["Cell.a.Dense.weight", "Cell.head.Dense.weight"]
        assert names(recorded(both[:1], self.tied), recorded(both, self.tied)) == [
            "Cell.head.Dense.forward.0.parameters.weight"
        ]


def with_score(noise: float | None) -> Dump:
    """``ALL``, and a module whose bias sums a gradient that cancels: what is left is ``noise``, or nothing at all."""
    made = same_gradients(ALL)
    name, arriving = "Cell.score.Dense", [0.5, -0.25, -0.25, 0.5, -0.5]
    items = [
        tensor("parameters.bias", [0.1, 0.2], f"{name}.forward.0"),
        tensor("input.0", arriving, f"{name}.backward.0"),
        tensor("output.0", arriving, f"{name}.backward.0"),
    ]
    if noise is not None:
        items.append(tensor("parameters_grad.bias", [noise, -noise / 2], f"{name}.parameters_grad.0"))
    made.entries.update(dump(items).entries)
    return made


def test_rounding_noise_beside_no_gradient_is_none() -> None:
    assert names(with_score(1e-9), with_score(None)) == names(with_score(None), with_score(1e-9)) == []
    assert names(with_score(None), with_score(1e-2)) == ["Cell.score.Dense.forward.0.parameters.bias"]


def test_the_others_go_by_the_targets_names_too() -> None:
    parameters = {name.replace(".b.", ".second."): values for name, values in PARAMETERS.items()}
    golden = recorded(parameters, parameters, gradient=[1.0, -2.0])
    target = same_gradients(without("Cell.b.Dense.weight", "Cell.b.Dense.bias"))
    mappings = Mappings(layer={"TopLayer": {"b": "second"}})
    (origin,) = compare_dumps(target, golden, Options(mappings=mappings)).origins
    assert "the target none: " in origin.reason and origin.details == ("the same holds for b.bias",)


def test_gradients_behind_the_branch_that_ends_inherit_from_its_parameter() -> None:
    """A block hands on the sum of what its layers do, of which one lacks its part; what is below takes that in."""
    parameters = {name.replace("Cell.", "Cell.block."): each for name, each in PARAMETERS.items()}
    lost, around, below = "Cell.block.b.Dense.weight", "Cell.block.Block.backward.0", "Cell.below.Dense.backward.0"

    def step(kept: Iterable[str], given: float) -> Dump:
        found = recorded(kept, parameters, gradient=[1.0, -2.0])
        for name, state in ((around, "output.0"), (below, "input.0"), (below, "output.0")):
            found.entries.setdefault(name, Entry(name, parse_entry(name), [], None))
            found.entries[name].items.append(tensor(state, [given, 2.0, 3.0], name))
        return found

    comparison = compared(step([name for name in parameters if name != lost], 1.0), step(parameters, 1.5))
    (origin,) = comparison.origins
    assert origin.target == "Cell.block.b.Dense.forward.0.parameters.weight"
    behind = [row.inherited_from for row in comparison.rows if row.differs and row.matched]
    assert behind == ["Cell.block.b.Dense.forward.0"] * 3


def test_a_gradient_of_half_precision_that_the_other_side_rounds_to_zeros_is_none() -> None:
    """The bias of an attention's key: nothing but rounding, 2^-24 or none of it."""
    steps = {"Float16": [], "Float32": ["Cell.b.Dense.forward.0.parameters.bias"]}
    for dtype, found in steps.items():
        noise = np.array([2.0**-24, -(2.0**-24)], dtype.lower())
        golden = recorded(["Cell.a.Dense.weight", "Cell.a.Dense.bias"], gradient=np.array([1, -2], dtype.lower()))
        rest = recorded(["Cell.b.Dense.weight", "Cell.b.Dense.bias"], gradient=noise)
        both = {**golden.entries, "Cell.b.Dense.parameters_grad.0": rest.entries["Cell.b.Dense.parameters_grad.0"]}
        zeros = recorded(["Cell.b.Dense.weight", "Cell.b.Dense.bias"], gradient=np.zeros(2, dtype.lower()))
        target = {**both, "Cell.b.Dense.parameters_grad.0": zeros.entries["Cell.b.Dense.parameters_grad.0"]}
        assert bool(names(replace(golden, entries=target), replace(golden, entries=both))) == bool(found), dtype


@pytest.mark.parametrize("joined_is_target", [False, True])
def test_a_part_of_a_joined_layer_whose_gradient_is_zeros_is_named(joined_is_target: bool) -> None:
    """What else may explain the difference of the whole, as a switch does, leaves no zeros."""
    gradients, weights = ({name: normal(8, 8) for name in ("q", "k")} for _ in range(2))
    weights["qk"] = np.concatenate(list(weights.values()))
    gradients["q"] *= np.float32(5e-3)
    parts = {"q": 0 * gradients["q"], "k": gradients["k"]}

    def sketched(place: str, values: np.ndarray, entry: str) -> Item:
        return tensor(place, values, entry, sketch=encode(sketch(values), values.dtype))

    def side(gradients: dict[str, np.ndarray]) -> Dump:
        around, items = "Cell.attn.Attention.forward.0", []
        for name, gradient in gradients.items():
            call = f"Cell.attn.{name}.Dense.forward.0"
            x, weight = np.eye(8, dtype=np.float32), weights[name]
            values = {"input.0": x, "output.0": x @ weight.T, "parameters.weight": weight}
            items += [sketched(place, value, call) for place, value in values.items()]
            items.append(sketched("parameters_grad.weight", gradient, f"Cell.attn.{name}.Dense.parameters_grad.0"))
        made = dump(items)
        for name in gradients:
            made.entries[f"Cell.attn.{name}.Dense.forward.0"].parent = around
        return made

    dumps, rule = [side(parts), side({"qk": np.concatenate(list(gradients.values()))})], {"q + k": "qk"}
    if joined_is_target:
        dumps, rule = dumps[::-1], {"qk": "q + k"}
    mappings = Mappings(layer={"Attention": rule})
    joined = join_fused(*dumps, mappings)
    pairs = pair(*joined, mappings)
    measure(pairs, *joined, Mode.STATISTICS)
    evidence = Evidence(pairs, dumps=joined)
    (found,) = MissingGradient(evidence).find(Walk(evidence), [])
    lacking, having = ("golden", "target") if joined_is_target else ("target", "golden")
    names = found[1].target, found[1].golden
    assert names[joined_is_target] == "Cell.attn.q.Dense.parameters_grad.0.weight"
    assert found[1].reason.startswith(f"the {having} has a gradient of this parameter, the {lacking} none")
