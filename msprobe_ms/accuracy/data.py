"""Values for the recorded arguments of a call: read from the dump's files, or drawn so that they fit its statistics.

What is drawn depends on the seed, the call and the argument's place alone: not on the order of calls, on workers, or on
which calls were selected.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from msprobe_ms.accuracy.calls import ApiCall, RecordedTensor
from msprobe_ms.accuracy.structure import Structure, structured
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.arrays.typed import TypedArray, rounded
from msprobe_ms.support.translation import tr

#: What stands for a range that the dump does not tell: of a tensor with NaN, Max and Min are NaN as well.
_UNKNOWN_RANGE = (-1.0, 1.0)

#: Gives the values of a tensor of a call.
Source: TypeAlias = Callable[[RecordedTensor], TypedArray]


class CannotDraw(Exception):
    """Values of a tensor cannot be made; the message is the reason."""


def drawn(call: ApiCall, seed: int) -> Source:
    """Return what draws values for the tensors of ``call``."""

    def draw(tensor: RecordedTensor) -> TypedArray:
        try:
            return _draw(tensor, generator(seed, call.name, tensor.place), structured(call, tensor))
        except (ValueError, OverflowError, TypeError) as error:  # no array has such a shape, size or dtype
            raise CannotDraw(tr("values cannot be made as the dump describes them: {error}", error=error)) from error

    return draw


def generator(seed: int, *words: str) -> np.random.Generator:
    """Return a generator for one purpose; other words, other numbers."""
    text = "\0".join((str(seed), *words))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def _draw(tensor: RecordedTensor, random: np.random.Generator, structure: Structure | None) -> TypedArray:
    dtype = parse_dtype(tensor.dtype)
    if dtype.kind == "bool":
        return TypedArray("bool", _booleans(tensor, random))
    if dtype.kind == "int":
        values = _integers(tensor, random, np.dtype(dtype.name))
    elif dtype.kind in ("float", "complex"):
        values = _floats(tensor, random, dtype.name)
    else:
        raise CannotDraw(tr("no values can be made of dtype {dtype}", dtype=tensor.dtype))
    if structure is not None:
        values = structure(values, random)
    if dtype.kind == "complex":
        return TypedArray(dtype.name, values.astype(np.dtype(dtype.name)))
    return rounded(values, dtype.name)


def _booleans(tensor: RecordedTensor, random: np.random.Generator) -> np.ndarray:
    """All true or all false where Max and Min say so, else either, in equal parts."""
    if tensor.maximum == tensor.minimum and tensor.maximum is not None:
        return np.full(tensor.shape, bool(tensor.maximum))
    values = random.random(tensor.shape) > 0.5
    _put_ends(values, False, True)
    return values


def _integers(tensor: RecordedTensor, random: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Uniform from Min to Max, both of which occur."""
    limits = np.iinfo(dtype)
    low, high = (_bounded(value, limits.min, limits.max) for value in (tensor.minimum, tensor.maximum))
    if low is None or high is None:
        low, high = 0, 1
    low, high = min(low, high), max(low, high)
    values = random.integers(low, high, size=tensor.shape, dtype=dtype, endpoint=True)
    _put_ends(values, low, high)
    return values


def _bounded(value: Statistic, lowest: int, highest: int) -> int | None:
    if not isinstance(value, (int, float)) or math.isnan(value):
        return None
    if math.isinf(value):
        return highest if value > 0 else lowest
    return min(max(int(value), lowest), highest)


def _floats(tensor: RecordedTensor, random: np.random.Generator, dtype: str) -> np.ndarray:
    """float64 values with the recorded range, mean and spread; NaN and infinities where the record has some.

    Of complex tensors the statistics are of the magnitude: angles are drawn uniformly.
    """
    low, high = _range(tensor)
    values = _spread(low, high, tensor, random)
    _put_ends(values, low, high)
    _put_irregular(values, tensor)
    if dtype.startswith("complex"):
        angles = random.uniform(-np.pi, np.pi, tensor.shape)
        with np.errstate(all="ignore"):
            return values * np.exp(1j * angles)
    return values


def _range(tensor: RecordedTensor) -> tuple[float, float]:
    """The smallest and largest finite value, as far as they were recorded."""
    low = _finite(tensor.finite_minimum, tensor.minimum)
    high = _finite(tensor.finite_maximum, tensor.maximum)
    if low is None and high is None:
        return _UNKNOWN_RANGE
    if low is None or high is None:  # one end was infinite
        known = high if low is None else low
        assert known is not None
        reach = max(1.0, abs(known))
        return (known - reach, known) if low is None else (known, known + reach)
    return min(low, high), max(low, high)


def _finite(*candidates: Statistic) -> float | None:
    for value in candidates:
        if isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    return None


def _spread(low: float, high: float, tensor: RecordedTensor, random: np.random.Generator) -> np.ndarray:
    """Draw from the beta distribution on [low, high] with the recorded mean and variance; uniform where they are not
    known, or no distribution has them.

    With m and v, mean and variance on [0, 1]: alpha + beta = m (1 - m) / v - 1 and alpha = m (alpha + beta).
    """
    width = high - low
    if not width > 0 or not math.isfinite(width):
        return np.full(tensor.shape, low) if width == 0 else random.uniform(low / 2, high / 2, tensor.shape) * 2
    count = math.prod(tensor.shape)
    mean, norm = _finite(tensor.mean), _finite(tensor.norm)
    if mean is not None and norm is not None and count > 2 and low < mean < high:
        middle = (mean - low) / width
        variance = (norm * norm / count - mean * mean) / width**2
        total = middle * (1 - middle) / variance - 1 if variance > 1e-12 else 0.0
        if 0.05 < total < 1e6:
            return low + width * random.beta(middle * total, (1 - middle) * total, tensor.shape)
    return random.uniform(low, high, tensor.shape)


def _put_ends(values: np.ndarray, low: float, high: float) -> None:
    """Have both ends of the range occur."""
    if values.size > 1:
        flat = values.reshape(-1)
        flat[0], flat[-1] = low, high
        values[...] = flat.reshape(values.shape)


def _put_irregular(values: np.ndarray, tensor: RecordedTensor) -> None:
    """Put one NaN, and an infinity at the first or last place, where the statistics hold such."""
    flat = values.reshape(-1)
    figures = (tensor.maximum, tensor.minimum)
    if not flat.size:
        return
    if any(isinstance(figure, float) and math.isinf(figure) and figure > 0 for figure in figures):
        flat[-1] = np.inf
    if any(isinstance(figure, float) and math.isinf(figure) and figure < 0 for figure in figures):
        flat[0] = -np.inf
    if any(isinstance(figure, float) and math.isnan(figure) for figure in figures):
        flat[1 if flat.size > 2 else 0] = np.nan
    values[...] = flat.reshape(values.shape)
