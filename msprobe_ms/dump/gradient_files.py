"""The files of task ``grad_probe``, as msprobe lays them out: each parameter's gradient at a call of the optimizer.

``{dump_path}/rank{r}/grad_summary_{step}.csv``  one row a parameter, in the optimizer's order
``{dump_path}/rank{r}/step{step}/{parameter}.npy``  of bool, where the gradient is above zero (levels L1 and L2)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.statistics import statistics

#: The column with the parameter's name; graph mode of msprobe 1.1.0 writes it with a capital.
NAME = "param_name"
MAXIMUM, MINIMUM, NORM, SHAPE = "max", "min", "norm", "shape"
CHECKSUM = "MD5"

#: Characters that a parameter's file is named with as they are.
_PLAIN = re.compile(r"[^a-zA-Z0-9_.\-]")
_SUMMARY = re.compile(r"grad_summary_([0-9]{1,18})\.csv")
_RANK = re.compile(r"rank([0-9]{1,9})")
#: Characters of a file's name, its ending included, that every file system takes.
_LONGEST = 200


def titles(level: str, bounds: Sequence[float]) -> list[str]:
    """Return the columns at level ``L0``, ``L1`` or ``L2``."""
    own = {"L0": [CHECKSUM], "L1": [], "L2": list(intervals(bounds))}[level]
    return [NAME, *own, MAXIMUM, MINIMUM, NORM, SHAPE]


def intervals(bounds: Sequence[float]) -> Iterator[str]:
    """Yield the names of the intervals between ascending bounds, left open and right closed, and that of zero."""
    if bounds:
        yield f"(-inf, {bounds[0]}]"
        yield from (f"({low}, {high}]" for low, high in pairwise(bounds))
        yield f"({bounds[-1]}, inf)"
    yield "=0"


def summary(name: str, gradient: np.ndarray, level: str, bounds: Sequence[float]) -> list[object]:
    """Return one row: the statistics of a gradient of any shape and numeric dtype, at this level."""
    found = statistics(gradient)
    own: list[object] = []
    if level == "L0":
        own = [hashlib.md5(np.ascontiguousarray(gradient, np.float32).tobytes(), usedforsecurity=False).hexdigest()]
    elif level == "L2":
        own = list(shares(gradient, bounds))
    return [name, *own, found.maximum, found.minimum, found.norm, str(list(gradient.shape))]


def shares(gradient: np.ndarray, bounds: Sequence[float]) -> Iterator[float]:
    """Yield the share of elements in each of `intervals`; NaN lies in none, and an empty gradient has zeros."""
    size = max(gradient.size, 1)
    if bounds:
        found = gradient[~np.isnan(gradient)] if gradient.dtype.kind == "f" else gradient.reshape(-1)
        places = np.searchsorted(np.asarray(bounds, np.float64), found.astype(np.float64), side="left")
        yield from (float(count) / size for count in np.bincount(places, minlength=len(bounds) + 1))
    yield float(np.count_nonzero(gradient == 0)) / size


def directions(gradient: np.ndarray) -> np.ndarray:
    """Return of which elements the gradient is above zero, of its shape; zero and NaN are not."""
    return np.asarray(gradient > 0)


def direction_file(step: int, name: str) -> Path:
    """Return the path of a parameter's directions below the rank's folder.

    Characters that file names cannot have everywhere, or that lead elsewhere, are written as their code, ``%2F``; a
    name too long keeps its end behind a checksum.
    """
    plain = _PLAIN.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), name)
    if not plain.strip("."):
        plain = plain.replace(".", "%2E")
    if len(plain) > _LONGEST:
        plain = f"{hashlib.md5(name.encode('utf-8', 'replace'), usedforsecurity=False).hexdigest()}{plain[-100:]}"
    return Path(f"step{step}", f"{plain}.npy")


def summary_file(step: int) -> str:
    """Return the name of a step's table."""
    return f"grad_summary_{step}.csv"


def step_of(file: Path) -> int | None:
    """Return the step whose table this file is; None for another file."""
    found = _SUMMARY.fullmatch(file.name)
    return None if found is None else int(found[1])


def rank_of(folder: Path) -> int | None:
    """Return the rank whose folder this is; None for another folder."""
    found = _RANK.fullmatch(folder.name)
    return None if found is None else int(found[1])
