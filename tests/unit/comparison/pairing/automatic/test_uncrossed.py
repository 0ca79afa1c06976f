"""Siblings that one side calls in another order keep their names, unless figures say otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.comparison.pairing.automatic import align_modules
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(8)
X, ERROR = (_RANDOM.standard_normal((4, 16)).astype(np.float32) for _ in range(2))
#: Two matrices of one initialisation, whose norms and extremes lie within a hundredth.
WEIGHTS = {"query": _RANDOM.uniform(-1, 1, (16, 16)).astype(np.float32)}
WEIGHTS["key"] = np.float32(1.004) * np.roll(WEIGHTS["query"], 1)
ATTENTION = "block.attention.self"


def side(prefix: str, names: tuple[str, ...], drift: float = 0.0) -> Dump:
    """An attention whose projections are called in this order, of which updates have set the weights apart."""
    layer, items = "Dense" if prefix == "Cell" else "Linear", []
    around = f"{prefix}.{ATTENTION}.Attention.forward.0"
    for name in names:
        weight = WEIGHTS[name] * (1 + np.float32(drift) * np.abs(np.roll(WEIGHTS[name], 3)))
        entry = f"{prefix}.{ATTENTION}.{name}.{layer}.forward.0"
        places = {"input.0": X, "parameters.weight": weight, "output.0": X @ weight.T}
        items += [tensor(place, values, entry, md5=None) for place, values in places.items()]
    items += [
        tensor("input.0", X, around, md5=None),
        tensor("output.0", X + np.float32(drift) * ERROR, around, md5=None),
    ]
    made = dump(items, "mindspore" if prefix == "Cell" else "pytorch")
    for name in names:
        made.entries[f"{prefix}.{ATTENTION}.{name}.{layer}.forward.0"].parent = around
    return made


@pytest.mark.parametrize("drift", [0.0, 3e-3])
@pytest.mark.parametrize("order", [("query", "key"), ("key", "query")])
def test_layers_called_in_another_order_keep_their_names(order: tuple[str, str], drift: float) -> None:
    alignment = align_modules(side("Cell", ("query", "key"), drift), side("Module", order))
    assert alignment.rules == {}
    paths = {path: other for (path, _), ((other, _), _) in alignment.pairs.items()}
    assert {name: paths[f"{ATTENTION}.{name}"] for name in order} == {name: f"{ATTENTION}.{name}" for name in order}
