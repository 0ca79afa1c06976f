"""A norm that activates stands beside one that an activation follows: what both normalised is compared."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.comparison.pairing.automatic import align_modules
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item

_RANDOM = np.random.default_rng(4)
X, NORMAL, LATER, GRADIENT = (_RANDOM.standard_normal((8, 16)).astype(np.float32) for _ in range(4))
SCALE = np.linspace(0.5, 1.5, 16, dtype=np.float32)


def call(name: str, *values: np.ndarray) -> list[Item]:
    return [
        tensor(f"{state}.0", value.astype(np.float32), name)
        for state, value in zip(("input", "output"), values, strict=True)
    ]


def side(prefix: str, *, encloses: bool, error: np.ndarray | float = 0.0) -> Dump:
    """A norm, its activation and a layer, with gradients; the norm's result is off by ``error``."""
    normal = (NORMAL + error).astype(np.float32)
    active, act = np.maximum(normal, 0), "norm.act" if encloses else "act"
    came = (GRADIENT + error).astype(np.float32)
    went = came * (normal > 0)
    items = [
        *call(f"{prefix}.{act}.ReLU.forward.0", normal, active),
        *call(f"{prefix}.norm.Norm.forward.0", X, active if encloses else normal),
        tensor("parameters.weight", SCALE, f"{prefix}.norm.Norm.forward.0"),
        *call(f"{prefix}.head.Layer.forward.0", active, LATER + error),
        *call(f"{prefix}.{act}.ReLU.backward.0", came, went),
        *call(f"{prefix}.norm.Norm.backward.0", came if encloses else went, X + error),
    ]
    made = dump(items, "mindspore" if prefix == "Cell" else "pytorch")
    for direction in ("forward", "backward") if encloses else ():
        made.entries[f"{prefix}.{act}.ReLU.{direction}.0"].parent = f"{prefix}.norm.Norm.{direction}.0"
    return made


def mappings_of(target: Dump, golden: Dump) -> Mappings:
    return Mappings(automatic=align_modules(target, golden).rules)


@pytest.mark.parametrize("encloses", [True, False])
def test_what_both_normalised_stands_in_one_row(encloses: bool) -> None:
    ours, theirs = side("Cell", encloses=encloses), side("Module", encloses=not encloses)
    mappings = mappings_of(ours, theirs)
    pairs = {each.target.name: each for each in pair(ours, theirs, mappings) if each.target is not None}
    (output,) = (row for row in pairs["Cell.norm.Norm.forward.0"].rows if row.state == "output")
    (gradient,) = (row for row in pairs["Cell.norm.Norm.backward.0"].rows if row.state == "input")
    inner = "act" if encloses is False else "norm.act"
    ends = [each.name for row in (output, gradient) for each in (row.target, row.golden) if each is not None]
    if encloses:
        assert ends == [
            f"Cell.{inner}.ReLU.forward.0.input.0", "Module.norm.Norm.forward.0.output.0",
            f"Cell.{inner}.ReLU.backward.0.output.0", "Module.norm.Norm.backward.0.input.0",
        ]  # fmt: skip
    else:
        assert ends == [
            "Cell.norm.Norm.forward.0.output.0", "Module.norm.act.ReLU.forward.0.input.0",
            "Cell.norm.Norm.backward.0.input.0", "Module.norm.act.ReLU.backward.0.output.0",
        ]  # fmt: skip


@pytest.mark.parametrize("drift", [0.0, 2e-5])
def test_it_is_as_far_apart_as_what_was_normalised(drift: float) -> None:
    """Also where a drift, as of updates, keeps what comes later from agreeing either."""
    error = drift * _RANDOM.standard_normal((8, 16))
    target, golden = side("Cell", encloses=False, error=error), side("Module", encloses=True)
    mappings = mappings_of(side("Cell", encloses=False), golden)
    comparison = compare_dumps(target, golden, Options(mappings=mappings))
    (row,) = (row for row in comparison.rows if row.target and row.target.name == "Cell.norm.Norm.forward.0.output.0")
    assert row.deviation is not None and row.deviation < 1e-4
    assert comparison.origins == []


@pytest.mark.parametrize("encloses", [True, False])
@pytest.mark.parametrize("drift", [0.0, 2e-5])
def test_one_side_may_activate_without_a_call(encloses: bool, drift: float) -> None:
    """In the norm's own code, or in code that follows it, beside an activation that follows it or that it encloses."""
    error = drift * _RANDOM.standard_normal((8, 16))
    target, golden = side("Cell", encloses=encloses, error=error), side("Module", encloses=not encloses)
    for name in [name for name in golden.entries if "ReLU" in name]:
        del golden.entries[name]
    comparison = compare_dumps(target, golden, Options(align=True))
    ends = {row.target.name for row in comparison.rows if row.target and row.golden and "Norm" in row.golden.name}
    act = "Cell.norm.act.ReLU" if encloses else "Cell.act.ReLU"
    state, state_back = ("input", "output") if encloses else ("output", "input")
    assert {f"{act}.forward.0.{state}.0", f"{act}.backward.0.{state_back}.0"} <= ends
    assert comparison.origins == []


def test_a_norm_that_computes_otherwise_is_the_origin() -> None:
    target, golden = side("Cell", encloses=False, error=0.01), side("Module", encloses=True)
    origin = compare_dumps(target, golden, Options(align=True)).origins[0]
    assert origin.target == "Cell.norm.Norm.forward.0.output.0"


def shared(prefix: str, *, encloses: bool) -> Dump:
    """Two norms, each with an activation of its own, or followed by one that both share."""
    items, parents = [], {}
    for number, normal in enumerate((NORMAL, LATER)):
        norm, active = f"{prefix}.norm{number}.Norm.forward.0", np.maximum(normal, 0)
        act = f"{prefix}.norm{number}.act.ReLU.forward.0" if encloses else f"{prefix}.relu.ReLU.forward.{number}"
        own = [*call(norm, X, active if encloses else normal), tensor("parameters.weight", SCALE + number, norm)]
        inner = call(act, normal, active)
        items += [*inner, *own] if encloses else [*own, *inner]
        if encloses:
            parents[act] = norm
    made = dump(items, "mindspore" if prefix == "Cell" else "pytorch")
    for name, parent in parents.items():
        made.entries[name].parent = parent
    return made


@pytest.mark.parametrize("encloses", [True, False])
def test_one_activation_for_all_norms_may_stand_beside_one_for_each(encloses: bool) -> None:
    """A module has one counterpart at most, so that most of these calls have none."""
    target, golden = shared("Cell", encloses=encloses), shared("Module", encloses=not encloses)
    mappings = Mappings(automatic=align_modules(target, golden).rules)
    rows = [
        row
        for each in pair(target, golden, mappings)
        if each.target and "Norm" in each.target.name
        for row in each.rows
    ]
    outputs = [row for row in rows if row.state == "output"]
    assert len(outputs) == 2
    assert [(row.target.norm, row.target.minimum) for row in outputs if row.target] == [
        (row.golden.norm, row.golden.minimum) for row in outputs if row.golden
    ]
