"""Turn arguments and results of calls into the values of a dump (docs/format.md, "Tensor leaves").

Tensor files are written on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from msprobe_ms.arrays.bytes_writer import BytesWriter
from msprobe_ms.arrays.in_memory import bytes_of
from msprobe_ms.arrays.npy import write_npy
from msprobe_ms.arrays.one_pass import Elements, Places
from msprobe_ms.arrays.statistics import is_large
from msprobe_ms.dump.names import data_name
from msprobe_ms.dump.writing.json_text import TensorLeaf, Value, with_file
from msprobe_ms.dump.writing.memory_budget import Copy, Write
from msprobe_ms.dump.writing.tensor_files import MarkedBytes, MarkedWrite
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.containers import DEEPEST, MOST_MEMBERS, Members, Walk, names_of
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.recording.output.figures import FigureReader
from msprobe_ms.recording.output.leaf_texts import LeafTexts
from msprobe_ms.recording.output.plain_values import NUMBERS, is_long_text, plain_leaf
from msprobe_ms.support.translation import tr, tr_join

if TYPE_CHECKING:
    from msprobe_ms.recording.output.step_dump import Sinks

_TOO_MANY = tr(
    "more than {most} values, or nested deeper than {deepest}: tensors among the rest are not recorded",
    most=MOST_MEMBERS,
    deepest=DEEPEST,
)
_CUT = tr("long lists and texts are cut, and what is nested deep is left out; no tensor is among it")
_NO_FILE = tr("it shows far more elements than it holds, or lies in a file itself: no file of it was written")


#: Types of most arguments and results, and places of the first arguments.
_BUILT_IN = frozenset((list, tuple))
_PATHS = tuple((str(place),) for place in range(16))

#: Stands for what was not asked for yet.
_UNKNOWN: Any = object()


class LeftOut(Exception):
    """Something of a call is not recorded, because it would take too much."""


class ValueSerializer:
    """Turns values into leaves; what goes wrong is reported to ``errors``.

    ``md5`` adds checksums, ``sketch`` sketches, ``strides`` those of tensors. ``as_text`` says that leaves may be text
    at once, as nobody looks at their figures.

    `build` has the framework compute, which is to be inside `unseen` and `quiet`; the others see to that themselves.

    Tensor files go to ``sinks``, which also say what stands for statistics that are left on a device.
    """

    def __init__(
        self,
        framework: Framework,
        sinks: Sinks,
        errors: ErrorLog,
        *,
        md5: bool,
        sketch: bool,
        strides: bool = False,
        as_text: bool = False,
    ) -> None:
        self.framework = framework
        self._store_tensor = sinks.first.tensor
        self._figures = FigureReader(framework, sinks.from_device, md5=md5, sketch=sketch)
        self._errors = errors
        self._strides = strides
        self._said_cut = False
        self._as_text = as_text and not (md5 or strides)
        #: How the framework tells where elements lie, which it knows from when recording has begun.
        self._places: Places | None = _UNKNOWN
        self._texts = LeafTexts(framework.dialect.tensor_type, sketch=sketch)

    def build(self, value: Any, entry: str, category: str, path: tuple[str, ...], save: bool) -> Value:
        """The leaf (or list or object of leaves) of ``value``, which stands at ``entry``.``category``.``path``.

        With ``save`` every tensor in it is written to its own file. Values of unknown types become null, and so do
        those that cannot be read: the others of the call are still recorded.
        """
        if self.framework.is_tensor(value):  # as most are
            return self._leaf(value, entry, category, path, save)
        walk = _Serializing(self, entry, category, path, save)
        try:
            leaf = walk.of(value)
        except Exception as error:
            walk.failed(error)
            leaf = None
        if walk.lost:
            self._errors.report(LeftOut(_TOO_MANY), walk.where)
        elif walk.cut and not self._said_cut:
            self._said_cut = True
            self._errors.note(tr_join(": ", (walk.where, _CUT)))
        return leaf

    def _leaf(self, tensor: Any, entry: str, category: str, path: tuple[str, ...], save: bool) -> Value:
        """The leaf of a tensor; null where it cannot be read, which is reported."""
        try:
            return self.tensor(tensor, entry, category, path, save)
        except Exception as error:
            self.report(error, ".".join(filter(None, (entry, category, *path))))
            return None

    def build_all(self, values: Sequence[Any], entry: str, category: str, save: bool) -> Value:
        """The leaves of a call's arguments or results, a list or tuple."""
        if not save and type(values) in _BUILT_IN and (found := self.at_once(values, entry, category)) is not None:
            return found
        return self.framework.quietly(self._all, values, entry, category, save)

    def _all(self, values: Sequence[Any], entry: str, category: str, save: bool) -> Value:
        if type(values) in _BUILT_IN and self._is_flat(values):
            return [
                plain_leaf(value) if type(value) in NUMBERS else self._leaf(value, entry, category, path, save)
                for value, path in zip(values, _PATHS, strict=False)
            ]
        return self.build(values, entry, category, (), save)

    def build_named(self, values: dict[str, Any], entry: str, category: str, save: bool) -> Value:
        """The leaves of a call's named arguments, or of a module's parameters."""
        if not save and (found := self.at_once(list(values.values()), entry, category)) is not None:
            return dict(zip(names_of(list(values)), found, strict=True))
        return self.framework.quietly(self._named, values, entry, category, save)

    def _named(self, values: dict[str, Any], entry: str, category: str, save: bool) -> Value:
        if not self._is_flat(values.values()):
            return self.build(values, entry, category, (), save)
        return {
            name: plain_leaf(value) if type(value) in NUMBERS else self._leaf(value, entry, category, (name,), save)
            for name, value in zip(names_of(list(values)), values.values(), strict=True)
        }

    def at_once(self, values: Sequence[Any], entry: str, category: str) -> list[Value] | None:
        """The leaves of few tensors and numbers, of which no files are written; None where they are something else."""
        if not self._as_text or len(values) > len(_PATHS) or self.framework.tells_of_questions():
            return None
        places = self._told() if self._places is _UNKNOWN else self._places
        texts: list[Any] | None = self._texts.of_all(values, places)
        if texts is None or None not in texts:  # as a rule
            return texts
        return self.framework.quietly(self._completed, texts, values, entry, category)

    def _told(self) -> Places | None:
        if self._places is _UNKNOWN:  # once recording has begun
            self._places = self.framework.places()
        return self._places

    def _completed(self, texts: list[Any], values: Sequence[Any], entry: str, category: str) -> list[Value]:
        return [
            self._leaf(value, entry, category, path, save=False) if text is None else text
            for text, value, path in zip(texts, values, _PATHS, strict=False)
        ]

    def _is_flat(self, values: Collection[Any]) -> bool:
        """Whether they are few, and tensors and numbers alone, for which nothing is walked."""
        if len(values) > len(_PATHS):
            return False
        is_tensor = self.framework.is_tensor
        return all(is_tensor(value) or type(value) in NUMBERS for value in values)

    def report(self, error: Exception, where: str) -> None:
        """Report that a value could not be recorded."""
        self._errors.report(error, where)

    def of_array(
        self, array: np.ndarray, dtype: str, entry: str, category: str, path: tuple[str, ...], save: bool
    ) -> Value:
        """The leaf of a tensor of dtype ``dtype`` that is at hand as an array, as `build` gives it."""
        try:
            return self.array(array, entry, category, path, save, self.framework.dialect.tensor_type, dtype)
        except Exception as error:
            self._errors.report(error, ".".join((entry, category, *path)))
            return None

    def tensor(self, tensor: Any, entry: str, category: str, path: tuple[str, ...], save: bool) -> Value:
        """The leaf of a tensor; of a nested one the leaves of those that it consists of."""
        framework, own = self.framework, tensor
        if self._as_text and not save and (texts := self._texts.of_all((tensor,), self._told())) and texts[0]:
            return texts[0]
        if self._as_text and (elements := framework.elements(tensor)) is not None:
            text = self._stored(tensor, elements, entry, category, path) if save else self._text(tensor, elements)
            if text is not None:
                return text
        tensor = framework.plain(own)
        if not framework.is_readable(tensor):
            return self._unreadable(tensor, entry, category, path, save)
        found = self._figures.of_tensor(tensor, exact=save)
        dtype, shape = framework.dtype_text(tensor), tuple(tensor.shape)
        maximum, minimum, mean, norm = found.statistics
        file = None
        if save and found.refused:
            self._errors.report(LeftOut(_NO_FILE), ".".join((entry, category, *path)))
        elif save:
            name = data_name(entry, category, path, framework.dialect.file_suffix)
            source = tensor if found.on_host is None else found.on_host
            marks = dtype, shape, *found.statistics
            copy = Copy(found.size, lambda: MarkedWrite(self._copied(source, found.array), marks))
            write = MarkedWrite(partial(framework.save_tensor, source, found.array), marks)
            file = self._written(entry, name, write, copy)
        return TensorLeaf(
            framework.dialect.tensor_type,
            dtype,
            shape,
            maximum,
            minimum,
            mean,
            norm,
            framework.requires_grad(own),
            file,
            found.md5,
            found.sketch,
            tuple(tensor.stride()) if self._strides else None,
        )

    def _text(self, tensor: Any, elements: Elements) -> bytes | None:
        return self._texts.of(elements, self.framework.requires_grad(tensor))

    def _stored(
        self, tensor: Any, elements: Elements, entry: str, category: str, path: tuple[str, ...]
    ) -> bytes | None:
        """The leaf of a tensor whose bytes are written as they lie, or else of a small one; None of others."""
        framework = self.framework
        writer = framework.file_writer(elements)
        if writer is None and is_large(elements.shape):
            return None
        if (text := self._texts.of(elements, None)) is None:
            return None
        data = None if writer is None else bytes_of(elements)
        write: MarkedWrite | MarkedBytes
        if writer is None or data is None:
            plain = framework.plain(tensor)
            array = framework.to_numpy(plain)
            write = MarkedWrite(partial(framework.save_tensor, plain, array), text)
            copy = Copy(array.nbytes, lambda: MarkedWrite(self._copied(plain, array), text))
        else:
            write = MarkedBytes(writer, elements.address, data, text)
            copy = Copy(data.nbytes, lambda: MarkedWrite(partial(_write_bytes, writer, data.tobytes()), text))
        name = data_name(entry, category, path, framework.dialect.file_suffix)
        file = self._written(entry, name, write, copy)
        return with_file(text, framework.requires_grad(tensor), file)

    def _unreadable(self, tensor: Any, entry: str, category: str, path: tuple[str, ...], save: bool) -> Value:
        framework = self.framework
        parts = framework.components(tensor)
        if parts is not None:
            return [self.tensor(part, entry, category, (*path, str(i)), save) for i, part in enumerate(parts)]
        shape = tuple(size if type(size) is int else 0 for size in tensor.shape)  # one may be a symbol
        kind, dtype = framework.dialect.tensor_type, framework.dtype_text(tensor)
        return TensorLeaf(kind, dtype, shape, None, None, None, None, framework.requires_grad(tensor))

    def _copied(self, tensor: Any, array: np.ndarray | None) -> Write:
        array = self.framework.to_numpy(tensor) if array is None else array
        return partial(self.framework.save_tensor, *self.framework.detached(tensor, array))

    def array(
        self, array: np.ndarray, entry: str, category: str, path: tuple[str, ...], save: bool, kind: str, dtype: str
    ) -> TensorLeaf:
        found = self._figures.of_array(array)
        file = None
        if save and found.refused:
            self._errors.report(LeftOut(_NO_FILE), ".".join((entry, category, *path)))
        elif save:
            name = data_name(entry, category, path, ".npy")
            marks = dtype, array.shape, *found.statistics
            copy = Copy(array.nbytes, lambda: MarkedWrite(partial(write_npy, array=array.copy()), marks))
            file = self._written(entry, name, MarkedWrite(partial(write_npy, array=array), marks), copy)
        maximum, minimum, mean, norm = found.statistics
        return TensorLeaf(kind, dtype, array.shape, maximum, minimum, mean, norm, None, file, found.md5, found.sketch)

    def numpy_array(self, array: np.ndarray, entry: str, category: str, path: tuple[str, ...], save: bool) -> Value:
        """The leaf of an array that a user holds; null where its elements are no numbers."""
        plain = np.ndarray.view(array, np.ndarray)
        if plain.dtype.kind not in "fiubc":
            return None
        return self.array(plain, entry, category, path, save, "numpy.ndarray", str(plain.dtype))

    def _written(self, entry: str, file: str, write: Write, copy: Copy) -> str | None:
        """The name of a tensor file after writing it; None when that fails: its statistics are still recorded."""
        try:
            there = self._store_tensor(file, write, entry, copy)
        except Exception as error:
            self._errors.report(error, file)
            return None
        return file if there else None


def _write_bytes(writer: BytesWriter, data: memoryview | bytes, file: BinaryIO) -> None:
    writer(file, data)


class _Serializing(Walk):
    """Turns nested values into leaves, each by itself: one that fails is null."""

    def __init__(self, values: ValueSerializer, entry: str, category: str, path: tuple[str, ...], save: bool) -> None:
        super().__init__(values.framework.is_tensor)
        self._values = values
        self._entry, self._category, self._prefix, self._save = entry, category, path, save

    @property
    def place(self) -> tuple[str, ...]:
        return (*self._prefix, *map(str, self._path))

    @property
    def where(self) -> str:
        """The name of the present item, for messages."""
        return ".".join(filter(None, (self._entry, self._category, *self.place)))

    def tensor(self, value: Any) -> Value:
        return self._values.tensor(value, self._entry, self._category, self.place if self._save else (), self._save)

    def special(self, value: Any) -> Value:
        return self._values.framework.special_leaf(value)

    def plain(self, value: Any) -> Value:
        if issubclass(type(value), np.ndarray):
            return self._values.numpy_array(value, self._entry, self._category, self.place, self._save)
        self.cut = self.cut or is_long_text(value)
        return plain_leaf(value)

    def made(self, value: Any, inside: Members, found: list[Any]) -> Value:
        names, _, length = inside
        if (left_out := length - len(found)) == 0:
            return super().made(value, inside, found)
        rest = {"type": "omitted", "value": f"{left_out} of {length} members"}
        if names is None:
            return [*found, rest]
        name = "…"
        while name in names:
            name += "…"
        return {**dict(zip(names, found, strict=False)), name: rest}

    def failed(self, error: Exception) -> None:
        self._values.report(error, self.where)
