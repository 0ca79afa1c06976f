"""What the documents tell to set in ``--thresholds`` lets an origin pass (docs/compare_columns.md)."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compare_parts import dump, tensor
from layer_dumps import NORM, call, layer_norm, normal
from repository import ROOT

from msprobe_ms.arrays.metrics import METRICS
from msprobe_ms.comparison.origin.explanations import EXPLANATIONS
from msprobe_ms.comparison.reporting.thresholds import Thresholds
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump

EPSILON = float(np.finfo(np.float32).eps)


def verdict(target: Dump, golden: Dump, roundings: float) -> str:
    changes = {"tolerances": {"roundings": {"float32": roundings}}}
    return compare_dumps(target, golden, Options(thresholds=Thresholds(changes))).verdict


@pytest.mark.parametrize("epsilon", [1e-2, 1e-3, 1e-4, 1e-6])
@pytest.mark.parametrize(("framework", "times"), [("pytorch", 24), ("mindspore", 48)])
def test_a_single_layer_passes_with_the_roundings_that_follow_from_its_deviation(
    epsilon: float, framework: str, times: int
) -> None:
    x = normal(4, 16, 64)
    target, golden = call(NORM, x, layer_norm(x, epsilon)), call(NORM, x, layer_norm(x, 1e-5, wide=True))
    golden.framework = framework
    (origin,) = compare_dumps(target, golden, Options()).origins
    assert origin.required_tolerance is not None
    roundings = times * origin.required_tolerance / EPSILON
    assert verdict(target, golden, roundings * 1.001) == "consistent"
    assert verdict(target, golden, roundings * 0.25) == "divergent"


def test_any_other_call_passes_with_the_factor_told() -> None:
    name = "Cell.net.block.Block.forward.0"
    x, y = normal(8, 16), normal(8, 16)
    target, golden = (
        dump([tensor("input.0", x, name), tensor("output.0", given, name)]) for given in (y * np.float32(1.001), y)
    )
    (origin,) = compare_dumps(target, golden, Options()).origins
    tolerance = origin.metrics["tolerance"]
    assert origin.required_tolerance is not None and isinstance(tolerance, float)
    factor = origin.required_tolerance / tolerance
    assert verdict(target, golden, 96 * factor * 1.001) == "consistent"
    assert verdict(target, golden, 96 * factor * 0.98) == "divergent"


def test_the_formula_of_every_metric_is_told() -> None:
    page = (ROOT / "docs" / "compare_columns.md").read_text(encoding="utf-8")
    told = page[page.index("## How the figures are made") :]
    for metric in METRICS:
        assert f"**{metric.title}** = " in told


def test_every_explanation_has_a_line() -> None:
    text = (ROOT / "docs" / "compare_columns.md").read_text(encoding="utf-8")
    table = text.partition("### What explains a difference")[2]
    for each in EXPLANATIONS:
        assert re.search(rf"^\|[^|]*{re.escape(each.name)}", table, re.MULTILINE), each.name
