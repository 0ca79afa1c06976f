"""What figures of a tensor cost: microseconds by dtype and size, of the pass in C, of numpy, and of what bounds them.

    python benchmarks/pass_time.py

A line of JSON for each dtype and size. All are timed in turns, in one process; the least of many runs counts, on a
machine that others use as well.

c, c_plain          statistics with a sketch and without, in one pass in C
numpy, numpy_plain  the same without the extension
floor               ``max``, ``min``, ``mean`` and ``numpy.linalg.norm``, one after another, in the tensor's dtype
read                one element of each 64 bytes, added up: what memory takes to be read at all
gigabytes           a second, by ``c``; and, of memory, by ``read``
"""

from __future__ import annotations

import json
import sys
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from msprobe_ms.arrays import one_pass
from msprobe_ms.arrays.statistics import statistics, summary

SIZES = (16, 1 << 10, 1 << 13, 1 << 16, 1 << 20, 1 << 24)
KINDS = ("float32", "float16", "bfloat16", "float64", "int64", "transposed")

#: Runs of each, and the seconds that one lasts at least.
RUNS, LASTS = 9, 3e-3


def tensor(kind: str, size: int) -> np.ndarray:
    """Normal numbers of a dtype; ``transposed`` are float32 in a matrix nearly square, ``bfloat16`` its bits."""
    normal = (np.random.default_rng(1).standard_normal(size) * 3).astype("float32")
    if kind == "bfloat16":
        return (normal.view(np.uint32) >> 16).astype(np.uint16)
    array = normal.astype("float32" if kind == "transposed" else kind)
    return array.reshape(1 << size.bit_length() // 2, -1).T if kind == "transposed" else array


def without_extension(function: Callable[[], Any]) -> Callable[[], Any]:
    """The same function where the extension is not built."""

    def run() -> None:
        figures, one_pass._figures = one_pass._figures, None
        try:
            function()
        finally:
            one_pass._figures = figures

    return run


def contenders(kind: str, array: np.ndarray) -> dict[str, Callable[[], Any]]:
    """What is timed of a tensor."""
    if kind == "bfloat16":
        read = one_pass.kind_of(kind)
        elements = one_pass.elements_at(array.ctypes.data, read, array.shape, None) if read else None
        assert elements is not None

        def widened() -> np.ndarray:
            return (array.astype(np.uint32) << 16).view(np.float32)

        return {
            "c": lambda: one_pass.sums(elements, sketch=True), "c_plain": lambda: one_pass.sums(elements, sketch=False),
            "numpy": without_extension(lambda: summary(widened())),
            "numpy_plain": without_extension(lambda: statistics(widened())),
            "floor": lambda: _floor(widened()),
        }  # fmt: skip
    return {
        "c": lambda: summary(array), "c_plain": lambda: statistics(array),
        "numpy": without_extension(lambda: summary(array)), "numpy_plain": without_extension(lambda: statistics(array)),
        "floor": lambda: _floor(array),
    }  # fmt: skip


def _floor(array: np.ndarray) -> None:
    array.max(), array.min(), array.mean(), np.linalg.norm(array)


def least(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The least microseconds of each function, which run in turns."""
    counts = {name: max(1, int(LASTS / timeit.timeit(function, number=1))) for name, function in functions.items()}
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(RUNS):
        for name, function in functions.items():
            seconds[name].append(timeit.timeit(function, number=counts[name]) / counts[name])
    return {name: round(min(column) * 1e6, 1) for name, column in seconds.items()}


def main() -> None:
    """Print a line for each kind and size."""
    for kind in KINDS:
        for size in SIZES:
            array = tensor(kind, size)
            summary(array)  # makes the tables of signs
            without_extension(lambda array=array: summary(array))()
            lines = array.ravel("K").view(np.uint8)[::64]
            found = least({**contenders(kind, array), "read": lambda lines=lines: np.add.reduce(lines, dtype=np.uint8)})
            speed = [round(array.nbytes / found[name] / 1e3, 1) for name in ("c", "read")]
            print(json.dumps({"kind": kind, "size": size, **found, "gigabytes": speed}), flush=True)


if __name__ == "__main__":
    if not one_pass.is_built():
        sys.exit("the extension is not built: there was no compiler at the install")
    main()
