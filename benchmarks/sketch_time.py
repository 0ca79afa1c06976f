"""What the sketch of a tensor costs beside its statistics: microseconds of both, and the ratio, in one run.

    python benchmarks/sketch_time.py

Statistics with and without the sketch are timed in turns; the least of many runs counts. "transposed" is a matrix that
is not contiguous, of which a sketch takes a copy.
"""

from __future__ import annotations

import json
import sys
import timeit
from collections.abc import Callable

import numpy as np

from msprobe_ms.arrays.statistics import statistics, summary

SIZES = (64, 1 << 10, 1 << 14, 1 << 16, 1 << 20, 1 << 24)
KINDS = ("float32", "float16", "float64", "int64", "bool", "transposed")

#: Runs of each, and the seconds that one lasts at least.
RUNS, LASTS = 9, 5e-3


def tensor(kind: str, size: int) -> np.ndarray:
    """Normal numbers of a dtype; ``transposed`` are float32 in a matrix that is nearly square."""
    dtype = "float32" if kind == "transposed" else kind
    array = (np.random.default_rng(1).standard_normal(size) * 3).astype(dtype)
    return array.reshape(int(size**0.5), -1).T if kind == "transposed" else array


def least(functions: list[Callable[[], object]]) -> list[float]:
    """The least microseconds of each function, which run in turns."""
    counts = [max(1, int(LASTS / timeit.timeit(function, number=1))) for function in functions]
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(RUNS):
        for function, count, column in zip(functions, counts, seconds, strict=True):
            column.append(timeit.timeit(function, number=count) / count)
    return [min(column) * 1e6 for column in seconds]


def main() -> None:
    """Print a line of JSON for each kind and size."""
    for kind in KINDS:
        for size in SIZES:
            array = tensor(kind, size)
            summary(array)  # makes the tables of signs
            without, with_ = least([lambda array=array: statistics(array), lambda array=array: summary(array)])
            row = {"kind": kind, "size": size, "without": round(without, 1), "with": round(with_, 1)}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
