"""Figures of tensors and arrays while a training runs: statistics, sketch, checksum, and what their files take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from mmap import mmap
from typing import Any, NamedTuple

import numpy as np

from msprobe_ms.arrays.one_pass import elements_of, is_built, say_if_missing
from msprobe_ms.arrays.repetition import Distinct, distinct
from msprobe_ms.arrays.statistics import (
    NOTHING,
    ChunkedStatistics,
    Statistics,
    StatisticsCache,
    checksum,
    is_large,
    statistics,
    summary,
    summary_of,
)
from msprobe_ms.frameworks.base import Framework

#: Elements of a tensor that shows more than it holds, for it to have a file: those shown, which a reader takes in, and
#: those written.
_MOST_SHOWN, _MOST_STORED = 1 << 29, 1 << 28


class Figures(NamedTuple):
    """What is known of the elements of a tensor.

    ``statistics``  Max, Min, Mean and Norm
    ``size``        bytes that a copy of it for its file takes
    ``array``       its elements, where they are at hand
    ``refused``     whether it may have no file: it shows far more elements than it holds
    ``on_host``     the tensor to write, where it was read from a device
    """

    statistics: Sequence[Any]
    sketch: Any = None
    md5: Any = None
    size: int = 0
    array: np.ndarray | None = None
    refused: bool = False
    on_host: Any = None


class FigureReader:
    """Reads figures of tensors of one step. What they are computed on a device for, ``from_device`` stands for."""

    def __init__(
        self, framework: Framework, from_device: Callable[[Any], Sequence[Any]], *, md5: bool, sketch: bool
    ) -> None:
        self._framework = framework
        self._from_device = from_device
        self._md5 = md5
        self._sketch = sketch
        self._known = StatisticsCache(sketch=sketch)
        say_if_missing()

    def of_tensor(self, tensor: Any, *, exact: bool) -> Figures:
        """Read a tensor that is readable; ``exact`` where its bytes are needed as well."""
        framework = self._framework
        large = is_large(tensor.shape) and framework.copies(tensor)
        if large and (known := framework.distinct(tensor)).elements is not tensor:
            return self._of_distinct(tensor, known)
        on_device = None if exact else framework.device_statistics(tensor, sketch=self._sketch, md5=self._md5)
        if on_device is not None:
            *figures, sketch, md5 = self._from_device(on_device)
            return Figures(figures, sketch, md5 if self._md5 else None)
        if exact or not large:  # a device is waited for once
            tensor = framework.on_host(tensor)
            large = large and framework.copies(tensor)
        if large:
            whole = ChunkedStatistics(framework.in_parts(tensor), md5=self._md5, sketch=self._sketch)
            return Figures(whole.statistics, whole.sketch, whole.md5, whole.nbytes, on_host=tensor)
        elements = None if exact or self._md5 or not is_built() else framework.elements(tensor)
        if elements is not None:
            return Figures(*summary_of(elements, sketch=self._sketch))
        array = framework.to_numpy(tensor)
        if not self._md5 and (elements := elements_of(array)) is not None:  # takes no longer than a checksum
            return Figures(*self._summary(array), None, array.nbytes, array, on_host=tensor)
        numbers, sketch, crc = self._known.statistics(framework.place(tensor, array), array)
        md5 = None
        if self._md5:
            md5 = f"{crc:08x}" if array.flags.c_contiguous else checksum(array)
        return Figures(numbers, sketch, md5, array.nbytes, array, on_host=tensor)

    def _summary(self, array: np.ndarray) -> tuple[Statistics, str | None]:
        return summary(array) if self._sketch else (statistics(array), None)

    def _of_distinct(self, tensor: Any, known: Distinct) -> Figures:
        """The same of a tensor that shows more elements than it holds: no sketch, no checksum."""
        if known.elements is None:
            return Figures(NOTHING, refused=True)
        whole = ChunkedStatistics(self._framework.in_parts(known.elements), md5=False)
        shown, held = math.prod(tensor.shape), math.prod(known.elements.shape)
        stored = held if known.compact else shown
        refused = shown > _MOST_SHOWN or stored > max(held, _MOST_STORED)
        numbers = known.statistics(whole.statistics, shown)
        return Figures(numbers, size=whole.nbytes // max(held, 1) * stored, refused=refused)

    def of_array(self, array: np.ndarray) -> Figures:
        """Read an array of numbers, of any shape; one in a file that it is mapped to only as far as it is there."""
        if _is_out_of_reach(array):
            return Figures(NOTHING, refused=True)
        known = distinct(array, array.shape, array.strides)
        if known.elements is None:
            return Figures(NOTHING, refused=True)
        if known.elements is not array:
            numbers = known.statistics(statistics(known.elements), array.size)
            return Figures(numbers, size=array.nbytes, array=array, refused=array.size > _MOST_STORED)
        numbers, sketch = self._summary(array)
        return Figures(numbers, sketch, checksum(array) if self._md5 else None, array.nbytes, array)


def _is_out_of_reach(array: np.ndarray) -> bool:
    """Whether an array lies in a file, and is large or beyond the file's end, where reading ends the process."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, mmap):
        return False
    try:
        return is_large(array.shape) or base.size() < len(base)
    except (OSError, ValueError):  # of no file, or closed
        return True
