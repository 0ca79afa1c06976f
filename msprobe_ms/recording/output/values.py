"""Turn arguments and results of calls into the values of a dump (docs/format.md, "Tensor leaves").

Tensor files are written on the way.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from msprobe_ms.arrays.npy import write_npy
from msprobe_ms.arrays.statistics import ChunkedStatistics, StatisticsCache, checksum, is_large, statistics, summary
from msprobe_ms.dump.names import data_name
from msprobe_ms.dump.writing.json_text import TensorLeaf, Value
from msprobe_ms.dump.writing.memory_budget import Copy, Write
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.output.error_log import ErrorLog

if TYPE_CHECKING:
    from msprobe_ms.recording.output.step_dump import Sinks

#: Containers nested deeper than this become null: nobody reads them, and a cycle must end somewhere.
_DEEPEST = 64

#: Bits of an integer that is written; Python turns none of more than 4300 digits into text.
_LONGEST_INTEGER = 14_000


class ValueSerializer:
    """Turns values into leaves; what goes wrong is reported to ``errors``. ``md5`` adds checksums, ``sketch`` sketches.

    Tensor files go to ``sinks``, which also say what stands for statistics that are left on a device.
    """

    def __init__(self, framework: Framework, sinks: Sinks, errors: ErrorLog, *, md5: bool, sketch: bool) -> None:
        self._framework = framework
        self._store_tensor = sinks.first.tensor
        self._from_device = sinks.from_device
        self._errors = errors
        self._md5 = md5
        self._sketch = sketch
        self._known = StatisticsCache(sketch=sketch)

    def build(self, value: Any, entry: str, category: str, path: tuple[str, ...], save: bool) -> Value:
        """The leaf (or list or object of leaves) of ``value``, which stands at ``entry``.``category``.``path``.

        With ``save`` every tensor in it is written to its own file. Values of unknown types become null, and so do
        those that cannot be read: the others of the call are still recorded.
        """
        try:
            return self._build(value, entry, category, path, save)
        except Exception as error:
            self._errors.report(error, ".".join((entry, category, *path)))
            return None

    def of_array(
        self, array: np.ndarray, dtype: str, entry: str, category: str, path: tuple[str, ...], save: bool
    ) -> Value:
        """The leaf of a tensor of dtype ``dtype`` that is at hand as an array, as `build` gives it."""
        try:
            return self._array(array, entry, category, path, save, self._framework.dialect.tensor_type, dtype)
        except Exception as error:
            self._errors.report(error, ".".join((entry, category, *path)))
            return None

    def _build(self, value: Any, entry: str, category: str, path: tuple[str, ...], save: bool) -> Value:
        if value is None or len(path) > _DEEPEST:
            return None
        if self._framework.is_tensor(value):
            return self._tensor(value, entry, category, path, save)
        if (special := self._framework.special_leaf(value)) is not None:
            return special
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return [self.build(member, entry, category, (*path, str(i)), save) for i, member in enumerate(value)]
        named = members(value)
        if named is not None:
            return {
                str(key): self.build(member, entry, category, (*path, str(key)), save) for key, member in named.items()
            }
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "fiubc":
                return None
            return self._array(value, entry, category, path, save, "numpy.ndarray", str(value.dtype))
        return _plain(value)

    def _tensor(self, tensor: Any, entry: str, category: str, path: tuple[str, ...], save: bool) -> TensorLeaf:
        framework = self._framework
        numbers: Sequence[Any] | None = None if save or self._md5 else self._on_device(tensor)
        array, md5, sketch, size = None, None, None, 0
        if numbers is None and is_large(tensor.shape) and framework.copies(tensor):
            whole = ChunkedStatistics(framework.in_parts(tensor), md5=self._md5, sketch=self._sketch)
            numbers, md5, sketch, size = whole.statistics, whole.md5, whole.sketch, whole.nbytes
        elif numbers is None:
            array = framework.to_numpy(tensor)
            numbers, sketch, crc = self._known.statistics(framework.place(tensor, array), array)
            size = array.nbytes
            if self._md5:
                md5 = f"{crc:08x}" if array.flags.c_contiguous else checksum(array)
        else:
            *numbers, sketch = numbers
        maximum, minimum, mean, norm = numbers
        file = None
        if save:
            name = data_name(entry, category, path, framework.dialect.file_suffix)
            copy = Copy(size, partial(self._copied, tensor, array))
            file = self._written(entry, name, partial(framework.save_tensor, tensor, array), copy)
        return TensorLeaf(
            framework.dialect.tensor_type,
            framework.dtype_text(tensor),
            tuple(tensor.shape),
            maximum,
            minimum,
            mean,
            norm,
            framework.requires_grad(tensor),
            file,
            md5,
            sketch,
        )

    def _on_device(self, tensor: Any) -> Sequence[Any] | None:
        """The four statistics and the sketch of a tensor on a device, computed there; None where that is not to be."""
        on_device = self._framework.device_statistics(tensor, sketch=self._sketch)
        return None if on_device is None else self._from_device(on_device)

    def _copied(self, tensor: Any, array: np.ndarray | None) -> Write:
        array = self._framework.to_numpy(tensor) if array is None else array
        return partial(self._framework.save_tensor, *self._framework.detached(tensor, array))

    def _array(
        self, array: np.ndarray, entry: str, category: str, path: tuple[str, ...], save: bool, kind: str, dtype: str
    ) -> TensorLeaf:
        numbers, sketch = summary(array) if self._sketch else (statistics(array), None)
        file = None
        if save:
            name = data_name(entry, category, path, ".npy")
            copy = Copy(array.nbytes, lambda: partial(write_npy, array=array.copy()))
            file = self._written(entry, name, partial(write_npy, array=array), copy)
        md5 = checksum(array) if self._md5 else None
        return TensorLeaf(kind, dtype, array.shape, *numbers, None, file, md5, sketch)

    def _written(self, entry: str, file: str, write: Write, copy: Copy) -> str | None:
        """The name of a tensor file after writing it; None when that fails: its statistics are still recorded."""
        try:
            there = self._store_tensor(file, write, entry, copy)
        except Exception as error:
            self._errors.report(error, file)
            return None
        return file if there else None


def members(value: Any) -> Mapping[Any, Any] | None:
    """Named members of dictionaries, named tuples and dataclass instances; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple):
        return dict(zip(value._fields, value, strict=False))  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _plain(value: Any) -> Value:
    if isinstance(value, enum.Enum):
        return None
    if _is_too_long(value):
        return None
    if isinstance(value, (bool, int, float, str)):
        return {"type": _builtin_name(value), "value": value}
    if isinstance(value, slice):
        ends: Sequence[Any] = (value.start, value.stop, value.step)
        shown = [end if isinstance(end, int) and not _is_too_long(end) else None for end in ends]
        return {"type": "slice", "value": shown}
    if value is Ellipsis:
        return {"type": "ellipsis", "value": "..."}
    if isinstance(value, np.generic) and value.dtype.kind in "fiub":
        plain = value.item()
        if value.dtype.kind == "f":
            plain = float(plain)  # a longdouble gives itself
        return {"type": type(value).__name__, "value": plain}
    return None


def _is_too_long(value: Any) -> bool:
    return isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER


def _builtin_name(value: Any) -> str:
    return next(kind.__name__ for kind in (bool, int, float, str) if isinstance(value, kind))
