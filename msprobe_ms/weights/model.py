"""What a file of weights is, whichever framework wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn

import numpy as np

from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def clean(name: str) -> str:
    """A name as it can be printed and written anywhere."""
    return _UNPRINTABLE.sub("_", name)


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor of a file, not read yet.

    ``dtype``   in numpy's spelling (``float32``, ``bfloat16``, ``float8_e4m3fn``); as written where it is none of these
    ``load``    reads it, bfloat16 and float8 as float32; raises DumpFormatError where the file is damaged there
    ``storage`` equal for tensors of one file that share their numbers; None where the format does not tell
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    load: Callable[[], np.ndarray]
    storage: Hashable = None


#: Dimensions numpy has at most, and the largest size it counts with.
MOST_DIMENSIONS, LARGEST_SIZE = 64, 2**63 - 1


def _possible(path: Path, weight: Weight) -> Weight:
    """The weight; where no array has its shape, one without it that says so when it is read."""
    if len(weight.shape) <= MOST_DIMENSIONS and all(0 <= size <= LARGEST_SIZE for size in weight.shape):
        return weight
    said = (
        tr("{count} dimensions", count=len(weight.shape))
        if len(weight.shape) > MOST_DIMENSIONS
        else tr("a size beyond 2^63 or below 0")
    )
    return Weight(
        weight.name,
        weight.dtype,
        (),
        partial(_refuse, tr("{path}: {name}: {said}: no shape", path=path, name=weight.name[:200], said=said)),
    )


def _refuse(message: str) -> NoReturn:
    raise DumpFormatError(message)


@dataclass
class Checkpoint:
    """The weights of one file, or of all shards of one model, by name in the order of the files.

    ``skipped``  what else is in there and was left out → how many
    ``problems`` what of it could not be read, in sentences
    """

    path: Path
    format: str
    weights: dict[str, Weight] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    #: Closes what is open while weights can still be loaded.
    opened: ExitStack = field(default_factory=ExitStack)

    def add(self, weight: Weight) -> None:
        """A second tensor of one name is not compared, and told."""
        if weight.name in self.weights:
            self.problems.append(
                tr(
                    "{path}: {name}: the name is there twice; the first was compared",
                    path=self.path,
                    name=weight.name[:200],
                )
            )
        else:
            self.weights[weight.name] = _possible(self.path, weight)

    def skip(self, what: str, count: int = 1) -> None:
        self.skipped[what] = self.skipped.get(what, 0) + count

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.close()
