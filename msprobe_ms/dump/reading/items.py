"""Read items from an entry's body in dump.json, in the order of the format, and load their tensors from files.

A container passes its keys on to the names of what it holds; only a *leaf*, an object with a text ``type``, and null
end a path. Nothing is dropped: a leaf of an unknown type becomes a value. Names of files in a dump are never trusted to
stay in their folder.
"""

from __future__ import annotations

import hashlib
import math
import os
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from msprobe_ms.arrays.npy import check_regular, load_array
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.arrays.torch_file import load_tensor
from msprobe_ms.dump.columns import ItemSlice, ItemTable, Place, Sort
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import LONGEST_NAME, NAMES_ACCEPTED, SKETCH, UNWRITTEN
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError
from msprobe_ms.support.translation import tr

#: Nesting the readers of the format accept.
DEEPEST = 400

#: Sections of an entry's body in the order of items: key, state of the items, whether they are keyword arguments.
_SECTIONS = (
    ("input_args", "input", False),
    ("input_kwargs", "input", True),
    ("input", "input", False),
    ("output", "output", False),
    ("parameters", "parameters", False),
)
SECTION_KEYS = frozenset(key for key, _, _ in _SECTIONS)

#: Characters of a key that are kept as they are; of a longer one a digest tells the rest.
_LONGEST_KEY = 1_000

#: Dimensions of a tensor, and elements it may have, that frameworks and numpy can tell at most.
_MOST_DIMENSIONS, _MOST_ELEMENTS = 64, 2**63 - 1

#: Characters of what stands in a shape's place and is none.
_LONGEST_SHAPE = 1000

#: What each leaf of a tensor with four statistics holds, and how many keys that are.
_tensor_parts = itemgetter("Max", "Min", "Mean", "Norm", "type", "dtype", "shape")
_KEYS = 7

#: Characters of a number that was written as text.
_LONGEST_NUMBER = 64

#: JSON integers have no bounds, floats have.
_LARGEST_EXPONENT = 1023


def call_items(table: ItemTable, entry: str, body: dict[str, Any]) -> ItemSlice:
    """Add the items of a forward or backward entry to ``table``.

    :raises DumpFormatError: nested deeper than ``DEEPEST``
    """
    walk = _Walk(table, entry)
    for key, state, keyword in _SECTIONS:
        section = body.get(key)
        if type(section) is list:  # as nearly all are
            walk.along(section, state, keyword)
        elif section is not None and section != {}:  # as most keyword arguments are
            if type(section) is not dict or _is_leaf(section):
                section = [section]  # an output that was not wrapped into a list
            walk.into(section, (), state, keyword)
    return walk.items


def gradient_items(table: ItemTable, entry: str, body: dict[str, Any]) -> ItemSlice:
    """Add the items of a parameters_grad entry ``{parameter: [leaf]}``: the list around one gradient is no level."""
    walk = _Walk(table, entry)
    for parameter, gradient in body.items():
        if isinstance(gradient, list) and len(gradient) == 1:
            gradient = gradient[0]
        walk.into(gradient, (parameter,), "parameters_grad")
    return walk.items


def saved_items(table: ItemTable, entry: str, body: Any) -> ItemSlice:
    """Add the items of a debug entry: a leaf, null, or any nesting of them."""
    walk = _Walk(table, entry)
    walk.into(body, (), "debug")
    return walk.items


def _shortened(key: str) -> str:
    if len(key) <= _LONGEST_KEY:
        return key
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{key[: _LONGEST_KEY - len(digest) - 1]}…{digest}"


class _Walk:
    """Goes down the sections of one entry and adds what it finds to the table."""

    __slots__ = ("_entry", "_start", "_table")

    def __init__(self, table: ItemTable, entry: str) -> None:
        self._table = table
        self._entry = entry
        self._start = len(table)
        table.begin(entry)

    @property
    def items(self) -> ItemSlice:
        return ItemSlice(self._table, self._start, len(self._table))

    def along(self, section: list[Any], state: str, keyword: bool) -> None:
        """Add the values of a section that is a list; nearly all are tensors with four floats, like one before."""
        table = self._table
        places, sorts = table.places_of_lists[state, keyword], table.sorts_of_leaves
        for number, value in enumerate(section):
            try:
                maximum, minimum, mean, norm, kind, dtype, shape = _tensor_parts(value)
                sort = sorts.get((kind, dtype, value.get("requires_grad"), *shape))
            except (TypeError, KeyError):
                sort = None
            if (
                sort is None
                or not type(maximum) is type(minimum) is type(mean) is type(norm) is float
                or (len(value) > _KEYS and _is_odd(value))
            ):
                self.into(value, (str(number),), state, keyword)
                continue
            place = places.get(number)
            if place is None:
                place = places[number] = table.place_code((state, (str(number),), keyword))
            table.add_coded(place, sort, maximum, minimum, mean, norm)
            if len(value) > _KEYS:
                table.add_beside(*_beside(value))

    def into(self, value: Any, path: tuple[str, ...], state: str, keyword: bool = False) -> None:
        kind = type(value)
        if kind is dict or kind is list:
            if kind is dict and type(value.get("type")) is str:
                self._leaf(value, (state, path, keyword))
                return
            if value and len(path) == DEEPEST:
                raise DumpFormatError(
                    tr(
                        "entry {entry}: nested deeper than {deepest} levels below {state}",
                        entry=repr(self._entry),
                        deepest=DEEPEST,
                        state=state,
                    )
                )
            if kind is dict and value:
                value = self._with_short_keys(value, path, state)
            for key, member in value.items() if kind is dict else enumerate(value):
                self.into(member, (*path, str(key)), state, keyword)
        elif value is None:
            self._table.add((state, path, keyword))
        else:  # a bare JSON scalar, where the format wants {"type", "value"}
            self._builtin(kind.__name__, value, (state, path, keyword))

    def _with_short_keys(self, value: dict[str, Any], path: tuple[str, ...], state: str) -> dict[str, Any]:
        """Give ``value`` with keys that can be names: a mapping's may be whole texts. Those of the path add up."""
        longest = max(map(len, value))
        if longest > _LONGEST_KEY:
            value, longest = {_shortened(key): member for key, member in value.items()}, _LONGEST_KEY
        if longest + sum(map(len, path)) > LONGEST_NAME:
            raise DumpFormatError(
                tr(
                    "entry {entry}: keys below {state} are too long; {names_accepted}",
                    entry=repr(self._entry),
                    state=state,
                    names_accepted=NAMES_ACCEPTED,
                )
            )
        return value

    def _leaf(self, leaf: dict[str, Any], place: Place) -> None:
        kind = leaf["type"]
        get = leaf.get
        if "value" in leaf:
            self._value(kind, leaf["value"], place)
        elif "dtype" not in leaf and "shape" not in leaf:
            self._text(kind, ", ".join(str(value) for key, value in leaf.items() if key != "type"), place)
        elif get(UNWRITTEN) is True:  # the file holds what happened to be in memory
            self._table.add(place)
        else:
            dtype, asked, shape = get("dtype"), get("requires_grad"), get("shape")
            sort: Sort = (
                "tensor", kind, dtype if type(dtype) is str else str(dtype), _shape(shape),
                asked if type(asked) is bool else None,
            )  # fmt: skip
            if type(dtype) is str and type(shape) is list and isinstance(sort[3], tuple):
                self._table.sorts_of_leaves.setdefault((kind, dtype, sort[4], *shape), self._table.sort_code(sort))
            maximum, minimum, mean, norm = map(_figure, (get("Max"), get("Min"), get("Mean"), get("Norm")))
            self._table.add(place, sort, (maximum, minimum, mean, norm), *_beside(leaf))

    def _value(self, kind: str, value: Any, place: Place) -> None:
        """Leaves with a ``value``, as tables hold them (docs/format.md, "Values that are no tensors")."""
        if value is None:
            self._table.add(place)
        elif kind == "torch.Size":
            self._text(kind, None, place, shape=str(value))
        elif kind == "slice" and isinstance(value, list):
            self._text(kind, None, place, shape=f"({len(value)},)")
        elif kind == "ellipsis":
            self._text(kind, "...", place)
        else:
            self._builtin(kind, value, place)

    def _builtin(self, kind: str, value: Any, place: Place) -> None:
        self._text(kind, _statistic(value), place, dtype=str(type(value)))

    def _text(self, kind: str, value: Statistic, place: Place, *, dtype: str | None = None, shape: str = "[]") -> None:
        self._table.add(place, ("value", kind, dtype or kind, shape, None), (value, value, value, value))


def _is_odd(leaf: dict[str, Any]) -> bool:
    """Whether it is more, or less, than a tensor with its statistics."""
    asked = leaf.get("requires_grad")
    return "value" in leaf or leaf.get(UNWRITTEN) is True or not (asked is None or type(asked) is bool)


def _beside(leaf: dict[str, Any]) -> tuple[str | None, str | None, Any]:
    """What a leaf holds beside its statistics: the checksum, the name of a file and the sketch."""
    get = leaf.get
    checksum = _string(md5) if (md5 := get("md5")) else None
    file = _string(name, missing="-1") if (name := get("data_name")) else None
    return checksum, file, get(SKETCH)


def _is_leaf(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _string(value: object, missing: str = "") -> str | None:
    return value if isinstance(value, str) and value != missing else None


def _statistic(value: Any) -> Statistic:
    """A figure as it stands; what is none becomes text, an integer beyond any float infinity."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _LARGEST_EXPONENT:
        return float("inf") if value > 0 else float("-inf")
    return value if value is None or isinstance(value, (float, int, str)) else str(value)


def _figure(value: Any) -> Statistic:
    """A tensor's figure; a text that is a number, as ``"NaN"`` of who avoids the bare token, becomes that number."""
    if type(value) is str and len(value) <= _LONGEST_NUMBER:
        try:
            return float(value)
        except ValueError:
            return value
    return _statistic(value)


def _shape(shape: Any) -> tuple[int, ...] | str | None:
    """A tensor's shape; what is none is kept as text."""
    try:
        return _sizes(tuple(shape))
    except (TypeError, ValueError):
        return None if shape is None else _brief(str(shape))


def _brief(text: str) -> str:
    """What is no shape as text that reports have room for."""
    return text if len(text) <= _LONGEST_SHAPE else f"{text[:_LONGEST_SHAPE]}… ({len(text)} characters)"


@lru_cache(maxsize=4096)
def _sizes(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """``shape`` itself, once for all tensors that share it."""
    if len(shape) > _MOST_DIMENSIONS or not all(type(size) is int and 0 <= size <= _MOST_ELEMENTS for size in shape):
        raise ValueError
    if math.prod(shape) > _MOST_ELEMENTS:
        raise ValueError
    return shape


TENSOR_FOLDER = "dump_tensor_data"


class TensorSource:
    """Loads the tensors of one dump, one at a time; nothing is kept.

    ``folder`` is where they lie: ``dump_tensor_data`` beside dump.json, else the folder recorded in dump.json as
    ``dump_data_dir``, or what has its last two names (``rank_0/Net``) in the same dump after that was moved; None when
    none of them exists. ``elsewhere`` tells that it is the recorded one and lies outside of the dump.
    """

    def __init__(self, dump_folder: Path, recorded: str | None = None) -> None:
        candidates = [dump_folder / TENSOR_FOLDER, *_moved_with(dump_folder, recorded)]
        if recorded:
            candidates.append(Path(recorded))
        self.folder = next((folder for folder in candidates if _is_folder(folder)), None)
        self._real_folder = os.path.realpath(self.folder) if self.folder is not None else ""
        # Of the candidates the recorded one is tried last.
        taken = self.folder if recorded and self.folder is candidates[-1] else None
        self.elsewhere = taken is not None and not _is_within(taken, dump_folder)
        self._looked_in = " or ".join(str(folder) for folder in candidates)

    def load(self, item: Item) -> np.ndarray:
        """Load the tensor of ``item``, with the shape and dtype it was saved with; bfloat16 and float8 as float32.

        The array may be read-only and strided. ``.npy``, ``.pt`` and ``.bin`` are read, none with pickle's help.

        :raises MissingTensorError: the item has no file: none was recorded, or it is not there
        :raises DumpFormatError: the file is damaged, or its name leads out of the folder
        """
        path = self.path(item)
        if path.suffix == ".pt":
            return load_tensor(path)
        return load_array(path, item.dtype, item.shape if isinstance(item.shape, tuple) else None)

    def path(self, item: Item) -> Path:
        """The file of ``item``'s tensor, in the folder. Raises MissingTensorError and DumpFormatError as ``load``."""
        if item.data_name is None:
            raise MissingTensorError(tr("{name}: no data_name is recorded in the dump", name=item.name))
        return self._path(item.data_name, item.name)

    def where(self, item: Item) -> str:
        """Name the file of ``item`` for a person to look at; "" where the dump has none."""
        return "" if item.data_name is None or self.folder is None else str(self.folder / item.data_name)

    def _path(self, data_name: str, item_name: str) -> Path:
        """The file of ``data_name``: a regular file within the folder, or in folders below it."""
        shown = f"{item_name}: data_name {data_name[:300]!r}"
        if not data_name.endswith((".npy", ".pt", ".bin")):
            raise DumpFormatError(tr("{shown}: accepted are names that end in .npy, .pt or .bin", shown=shown))
        if not {"", ".", ".."}.isdisjoint(data_name.split("/")) or "\\" in data_name or "\0" in data_name:
            raise DumpFormatError(
                tr(
                    "{shown}: accepted is a file name, with folders below {tensor_folder} alone",
                    shown=shown,
                    tensor_folder=TENSOR_FOLDER,
                )
            )
        if self.folder is None:
            raise MissingTensorError(
                tr("{shown}: there is no folder {looked_in}", shown=shown, looked_in=self._looked_in)
            )
        path = self.folder / data_name
        try:
            real = Path(self._real_folder, data_name)
            if "/" in data_name or real.is_symlink():  # any other file is where its name says
                real = Path(os.path.realpath(real))
            if not real.is_relative_to(self._real_folder):
                raise DumpFormatError(tr("{shown}: a link that leaves {folder}", shown=shown, folder=self.folder))
        except (OSError, ValueError) as error:
            raise DumpFormatError(
                tr("{path}: cannot be read: {reason}", path=path, reason=getattr(error, "strerror", None) or error)
            ) from error
        check_regular(real)
        return real


def _moved_with(dump_folder: Path, recorded: str | None) -> list[Path]:
    """Where ``…/rank_R/Net`` lies now: the index stands in ``[graph/]step{N}/rank{R}`` of the same dump."""
    tail = Path(recorded).parts[-2:] if recorded else ()
    if len(tail) < 2 or not tail[0].startswith("rank_") or ".." in tail:
        return []
    return [above.joinpath(*tail) for above in dump_folder.absolute().parents[1:3]]


def _is_within(folder: Path, dump_folder: Path) -> bool:
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(dump_folder))


def _is_folder(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except (OSError, ValueError):  # a recorded folder can hold anything
        return False
