"""What some arguments must be beside their range: sorted, positive definite, without an index twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import yaml

from msprobe_ms.accuracy.calls import ApiCall, RecordedTensor

#: Makes drawn values (float64 or integers) what an argument must be; the shape stays.
Structure: TypeAlias = Callable[[np.ndarray, np.random.Generator], np.ndarray]

_FILE = Path(__file__).with_name("structures.yaml")


def structured(call: ApiCall, tensor: RecordedTensor) -> Structure | None:
    """Return what the values of an argument have to be made; None for most."""
    direction, _, place = tensor.place.partition(".")
    name = _table().get((call.api.rpartition(".")[2], place.partition(".")[2])) if direction == "forward" else None
    return None if name is None else _STRUCTURES[name]


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], str]:
    """(API, place of the argument) → structure."""
    listed = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
    return {
        (api, str(place)): structure
        for structure, apis in listed.items()
        for api, places in apis.items()
        for place in places
    }


def _sorted(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return np.sort(values, axis=-1) if values.ndim else values


def _symmetric(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return (values + values.swapaxes(-1, -2)) / 2 if _is_square(values) else values


def _positive_definite(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A A^T / n + the size of A's elements on the diagonal: well conditioned."""
    if not _is_square(values):
        return values
    size = values.shape[-1]
    product = values @ values.swapaxes(-1, -2) / size
    scale = np.mean(np.abs(np.diagonal(product, axis1=-2, axis2=-1))) or 1.0
    return product + scale * np.eye(size)


def _well_conditioned(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A matrix whose inverse is no larger than its elements are: a multiple of the identity is added."""
    if not _is_square(values):
        return values
    return values + np.eye(values.shape[-1]) * (np.abs(values).max(initial=1.0) * values.shape[-1])


def _distinct(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Indices without repetition along the last axis, where the range has as many: the order of writes to one place is
    not defined."""
    if not values.size or not values.ndim:
        return values
    low, high = int(values.min()), int(values.max())
    count = values.shape[-1]
    if high - low + 1 < count or high - low > 10_000_000:
        return values
    rows = [random.permutation(high - low + 1)[:count] + low for _ in range(values.size // count)]
    return np.array(rows, values.dtype).reshape(values.shape)


def _is_square(values: np.ndarray) -> bool:
    return values.ndim >= 2 and values.shape[-1] == values.shape[-2]


_STRUCTURES: dict[str, Structure] = {
    "sorted": _sorted,
    "symmetric": _symmetric,
    "positive definite": _positive_definite,
    "well conditioned": _well_conditioned,
    "distinct": _distinct,
}
