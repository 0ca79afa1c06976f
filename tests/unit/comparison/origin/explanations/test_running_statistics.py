"""Running statistics differ by what their call takes in, measured against the mean or variance itself."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings

CALL = "Cell.norm.BatchNorm2d.forward.0"
RANDOM = np.random.default_rng(5)
#: Four channels that spread far around means near zero.
TAKEN = RANDOM.standard_normal((8, 4, 6, 6)).astype(np.float32)
ERROR = RANDOM.standard_normal(TAKEN.shape).astype(np.float32)


def compared(taken: np.ndarray, momentum: float = 0.1) -> list[Pair]:
    """A batch normalisation of ``taken`` beside the golden's of TAKEN with momentum 0.1."""
    before = node_of("Cell.stem.Dense.forward.0", taken, None), node_of("Cell.stem.Dense.forward.0", TAKEN, None)
    target = dump([*before[0], *node_of(CALL, taken, momentum)])
    golden = dump([*before[1], *node_of(CALL, TAKEN, 0.1)], "pytorch")
    pairs = pair(target, golden, Mappings())
    measure(pairs, target, golden, "statistics")
    return pairs


def node_of(entry: str, taken: np.ndarray, momentum: float | None) -> list:  # type: ignore[type-arg]
    if momentum is None:
        weights = [tensor(f"parameters.{name}", TAKEN[0], entry) for name in ("gate", "weight", "bias")]
        return [tensor("input.0", TAKEN[:, 0], entry), *weights, tensor("output.0", taken, entry)]
    wide = taken.astype(np.float64)
    mean = (0.001 + momentum * wide.mean((0, 2, 3))).astype(np.float32)
    variance = (1 - momentum + momentum * wide.var((0, 2, 3))).astype(np.float32)
    normed = ((wide - wide.mean((0, 2, 3), keepdims=True)) / wide.std((0, 2, 3), keepdims=True)).astype(np.float32)
    return [
        tensor("input.0", taken, entry),
        tensor("parameters.running_mean", mean, entry),
        tensor("parameters.running_var", variance, entry),
        tensor("output.0", normed, entry),
    ]


@pytest.mark.parametrize("error", [3e-5, 1e-4])
def test_they_are_as_far_apart_as_their_batches_make_them(error: float) -> None:
    pairs = compared(TAKEN + np.float32(error) * (ERROR + 0.5))
    mean = next(row for pair_ in pairs for row in pair_.rows if row.target and row.target.path == ("running_mean",))
    assert mean.deviation is not None and mean.tolerance is not None and mean.deviation > mean.tolerance
    assert not any(origin.state == "parameters" for origin in find_origins(Evidence(pairs)))
    assert mean.explained_by == "running statistics"


def test_another_momentum_is_told() -> None:
    found = find_origins(Evidence(compared(TAKEN, momentum=0.9)))
    assert found[0].target == f"{CALL}.parameters.running_mean"
