"""Dropout in code that is not recorded is told from faults, by its elements, and perhaps by its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare_nodes import assert_short
from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.origin.explanations.dropout import are_masked_alike
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(11)
_VALUES = _RANDOM.standard_normal((8, 12, 32)).astype(np.float32)


def dropout(values: Any, p: float) -> Any:
    """What a framework's dropout gives out, drawn anew each time."""
    return values * (_RANDOM.random(values.shape) >= p) / np.float32(1 - p)


def alike(target: Any, golden: Any) -> bool:
    return are_masked_alike(target.ravel().astype(np.float64), golden.ravel().astype(np.float64), 1e-5)


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("values", [_VALUES, np.maximum(_VALUES, 0)], ids=["normal", "relu"])
def test_two_masks_of_one_probability_are_told_however_often_drawn(p: float, values: Any) -> None:
    assert all(alike(dropout(values, p), dropout(values, p) * np.float32(1 + 1e-6)) for _ in range(20))


def test_other_probabilities_and_faults_are_not() -> None:
    dropped, flat = dropout(_VALUES, 0.3), _VALUES.ravel()
    causal = np.tril(np.ones((32, 32), np.float32)) * _RANDOM.standard_normal((8, 32, 32)).astype(np.float32)
    lengths = np.arange(12)[:, None] < 6
    for target, golden in (
        (dropout(_VALUES, 0.1), dropped),  # another setting is a fault
        (_VALUES, dropped),  # so is dropout on one side alone
        (dropped, dropout(_VALUES, 0.3) * np.float32(1.01)),
        (np.maximum(_VALUES, 0), np.minimum(_VALUES, 0)),
        (np.maximum(_VALUES, 0), _VALUES),
        (causal, np.swapaxes(causal, 1, 2)),
        (_VALUES * lengths, _VALUES * ~lengths),
        (_VALUES * lengths, _VALUES * np.roll(lengths, 2)),
        (np.where(np.arange(flat.size) % 2, flat, 0), np.where(np.arange(flat.size) % 3, flat, 0)),
        (dropped * np.float32("nan"), dropped),
        (dropped.ravel()[:30], dropout(_VALUES, 0.3).ravel()[:30]),  # too few to tell
        (np.zeros(100), np.zeros(100)),
    ):
        assert not alike(target, golden)


def step(folder: Path | None, taken: Any) -> Dump:
    """A layer that gives out the values, and one that takes in what code between them made of these."""
    first, second = "Cell.a.Dense.forward.0", "Cell.b.Dense.forward.0"
    made = {("input.0", first): _VALUES, ("output.0", first): _VALUES, ("input.0", second): taken}
    items = [tensor(place, values, entry) for (place, entry), values in made.items()]
    if folder is None:
        return dump(items)
    (folder / "dump_tensor_data").mkdir(parents=True)
    for item, values in zip(items, made.values(), strict=True):
        np.save(folder / "dump_tensor_data" / str(item.data_name), values)
    found = dump(items, folder=folder)
    found.mode = "tensor"
    return found


def compared(target: Any, golden: Any, folder: Path | None = None) -> Comparison:
    folders = (None, None) if folder is None else (folder / "target", folder / "golden")
    comparison = compare_dumps(step(folders[0], target), step(folders[1], golden), Options())
    for origin in (*comparison.origins, *comparison.random):
        assert_short(origin)
    return comparison


def test_elements_tell_it_and_it_is_no_origin(tmp_path: Path) -> None:
    comparison = compared(dropout(_VALUES, 0.1), dropout(_VALUES, 0.1), tmp_path)
    assert (comparison.verdict, comparison.origins) == ("incomplete", [])
    (random,) = comparison.random
    assert (random.kind, random.target) == ("random", "Cell.b.Dense.forward.0.input.0")
    assert "probably dropout, called as a function in code that was not recorded" in random.reason


def test_a_fault_between_layers_stays_one(tmp_path: Path) -> None:
    (origin,) = compared(_VALUES * np.float32(1.5), _VALUES, tmp_path).origins
    assert origin.kind == "outside" and "dropout" not in origin.reason


def test_statistics_alone_give_a_hint() -> None:
    (origin,) = compared(dropout(_VALUES, 0.1), dropout(_VALUES, 0.1)).origins
    assert origin.kind == "outside"
    told = "; ".join(origin.details)
    assert "between Cell.a.Dense.forward.0 (agrees) and Cell.b.Dense.forward.0" in told
    assert "its statistics differ no more than two random masks make them" in told
    assert "if dropout is called there as a function, it may differ: seed both sides alike" in told
    for fault in (1.5, 1.0002):
        (origin,) = compared(_VALUES * np.float32(fault), _VALUES).origins
        assert "dropout" not in " ".join((origin.reason, *origin.details))
