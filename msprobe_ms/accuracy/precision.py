"""The precision of a reference: floats of the arguments raised, and what rounding them would have done."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from msprobe_ms.accuracy.calls import argument_leaves, map_arguments
from msprobe_ms.accuracy.data import generator
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray, rounded
from msprobe_ms.frameworks.api_calls import Arguments, DtypeArgument

#: Floats that are half as wide as float32, or less.
_NARROW = frozenset({"float16", "bfloat16"})


class Precision(Enum):
    """In what the reference computes.

    ``DOUBLE``  float64, whatever the API was given
    ``PEER``    one step above the arguments, as msprobe does: float16 and bfloat16 in float32, float32 in float64, and
                float32 where arguments have several dtypes
    ``SAME``    the arguments' own dtype
    """

    DOUBLE = "double"
    PEER = "peer"
    SAME = "same"


def reference_dtype(arguments: Arguments, precision: Precision) -> str | None:
    """Return the dtype that floats of the arguments are raised to; None leaves them as they are."""
    if precision is Precision.SAME:
        return None
    if precision is Precision.DOUBLE:
        return "float64"
    leaves = argument_leaves(arguments)
    floats = {leaf.dtype for leaf in leaves if isinstance(leaf, TypedArray) and _is_float(leaf.dtype)}
    return "float32" if len(floats) > 1 or floats <= _NARROW else "float64"


def raise_leaf(leaf: Any, dtype: str | None) -> Any:
    """Give a tensor or a dtype among arguments in the reference's precision; all else as it is."""
    if dtype is None:
        return leaf
    if isinstance(leaf, DtypeArgument):
        return DtypeArgument(_raised(leaf.name, dtype))
    if isinstance(leaf, TypedArray):
        name = _raised(leaf.dtype, dtype)
        return leaf if name == leaf.dtype else TypedArray(name, leaf.values.astype(np.dtype(name)))
    return leaf


def _raised(name: str, dtype: str) -> str:
    if _is_float(name):
        return name if name == "float64" else dtype
    if parse_dtype(name).kind == "complex":
        return "complex128" if dtype == "float64" else name
    return name


def _is_float(name: str) -> bool:
    return parse_dtype(name).kind == "float"


def perturbed(arguments: Arguments, seed: int, call: str, repetition: int) -> Arguments:
    """Move each float of the arguments by up to half a unit in its last place, at random, and give them in float64.

    How far a correct result moves under this is the error that no implementation which rounds can be blamed for (the
    backward error of N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 1.5).
    """
    places = iter(range(10**9))

    def move(leaf: Any) -> Any:
        place = next(places)
        if not isinstance(leaf, TypedArray) or not _is_float(leaf.dtype):
            return leaf
        random = generator(seed, call, "perturbed", str(repetition), str(place))
        return TypedArray("float64", moved(leaf, random))

    return map_arguments(arguments, move)


def moved(leaf: TypedArray, random: np.random.Generator) -> np.ndarray:
    """Return float64 values, each of ``leaf`` moved by up to half a unit in its last place; zero stays zero."""
    half = parse_dtype(leaf.dtype).epsilon / 2
    values = leaf.values.astype(np.float64)
    return values * (1 + half * random.uniform(-1, 1, values.shape))


def to_dtype(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return values as a tensor of ``dtype`` would hold them, in float64."""
    return rounded(values, dtype).values.astype(np.float64)
