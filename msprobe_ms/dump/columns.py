"""The items of a dump in columns, so that a million of them fit into memory: 60 bytes each instead of 600."""

from __future__ import annotations

import math
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add
from struct import Struct
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.dump.model import Item, suffix_of
from msprobe_ms.dump.sketch_column import SketchColumn

#: What an item is to its call: state, path, keyword; and what it is: kind, type, dtype, shape, requires_grad.
Place = tuple[str, tuple[str, ...], bool]
Sort = tuple[str, str, str | None, tuple[int, ...] | str | None, bool | None]
FourStatistics = tuple[Statistic, Statistic, Statistic, Statistic]
FourFloats = tuple[float, float, float, float]

NULL: Sort = ("null", "", None, None, None)
_NO_STATISTICS: FourStatistics = (None, None, None, None)
#: Items that are kept when they have been made, as those who read go through the items several times: all of a common
#: dump's, 20 MB; of a very large one those of the entries just read. Powers of two.
_KEPT, _KEPT_OF_MANY = 1 << 16, 1 << 12
_ZEROS: FourFloats = (0.0, 0.0, 0.0, 0.0)
_packed = Struct("4d").pack
#: Bytes of what an item is, its statistics apart: the codes of its place and its sort.
_LAYOUT = 8


@dataclass(frozen=True, slots=True)
class ItemForm:
    """What entries hold that differ in figures and sketches alone.

    ``count``              how many items
    ``places``, ``sorts``  the codes of these, as the columns hold them
    ``told``               a byte for each of their statistics: whether it is a figure of each entry's own
    ``order``              of these the places among the figures as they come
    ``irregular``          the statistics of items that are no tensors with four floats, by the place of the item
    ``sketches``           places of sketches among those as they come, and of their items
    """

    count: int
    places: bytes
    sorts: bytes
    told: bytes
    order: npt.NDArray[np.intp]
    irregular: Sequence[tuple[int, FourStatistics]]
    sketches: Sequence[tuple[int, int]]


class ItemTable:
    """Items in the order they were added, each told by its number.

    ``places``, ``sorts``  codes of what the items of a dump share in great numbers
    ``statistics``         Max, Min, Mean, Norm of each item one after another
    ``irregular``          the statistics of all other items than tensors with four floats, by the item's number
    """

    def __init__(self, *, sketches: bool = True) -> None:
        """Make an empty table, which passes sketches over unless they are asked for."""
        self._keeps_sketches = sketches
        self.places, self.sorts, self.owners = array("I"), array("I"), array("I")
        self.statistics = array("d")
        self.irregular: dict[int, FourStatistics] = {}
        #: In md5 tables of today a plain value has the checksum of its text (docs/format.md, "Checksums").
        self.value_checksums = False
        self.entries: list[str] = []
        #: The codes of places in sections that are lists: by state and keyword, then by the place in the list.
        self.places_of_lists: dict[tuple[str, bool], dict[int, int]] = defaultdict(dict)
        #: The codes of sorts by what leaves of tensors hold: type, dtype, requires_grad, and the sizes of the shape.
        self.sorts_of_leaves: dict[tuple[Any, ...], int] = {}
        self._known_places: dict[Place, int] = {}
        self._known_sorts: dict[Sort, int] = {}
        self._known_irregular: dict[tuple[type, Statistic], FourStatistics] = {}
        self._place_list: list[Place] = []
        #: What follows the entry in the name of an item at each place.
        self._suffixes: list[str] = []
        self._sort_list: list[Sort] = []
        #: The elements of an item of each sort.
        self._sizes: list[int] = []
        #: One text or None an item; [] as long as no item has any.
        self._checksums: list[str | None] = []
        self._files: list[str | None] = []
        self._sketches = SketchColumn()
        self._kept: dict[int, tuple[int, Item]] = {}
        #: The codes of sorts of plain values.
        self.plain_sorts: set[int] = set()

    def __len__(self) -> int:
        return len(self.places)

    def begin(self, entry: str) -> None:
        """Begin an entry, to which belongs what is added from now on."""
        self.entries.append(entry)

    def rename(self, number: int, entry: str) -> None:
        """Give another name to the entry that the item belongs to."""
        self.entries[self.owners[number]] = entry
        self._kept.clear()

    def add(
        self,
        place: Place,
        sort: Sort = NULL,
        statistics: FourStatistics = _NO_STATISTICS,
        checksum: str | None = None,
        file: str | None = None,
        sketch: Any = None,
    ) -> None:
        maximum, minimum, mean, norm = statistics
        if sort[0] == "tensor" and type(maximum) is type(minimum) is type(mean) is type(norm) is float:
            self.add_floats(place, sort, statistics, checksum, file, sketch)  # type: ignore[arg-type]
        else:
            number = len(self.places)
            self.add_floats(place, sort, _ZEROS, checksum, file, sketch)
            self.irregular[number] = self._shared(statistics)

    def add_floats(
        self,
        place: Place,
        sort: Sort,
        statistics: FourFloats,
        checksum: str | None = None,
        file: str | None = None,
        sketch: Any = None,
    ) -> None:
        """Add an item that has four floats, as nearly all have."""
        self.add_coded(self.place_code(place), self.sort_code(sort), *statistics)
        if checksum is not None or file is not None or sketch is not None:
            self.add_beside(checksum, file, sketch)

    def add_coded(self, place: int, sort: int, maximum: float, minimum: float, mean: float, norm: float) -> None:
        """Add an item with four floats whose place and sort are known by their codes."""
        self.places.append(place)
        self.sorts.append(sort)
        self.owners.append(len(self.entries) - 1)
        self.statistics.frombytes(_packed(maximum, minimum, mean, norm))  # in half the time of extend

    def form_of(self, trial: ItemTable, figures: Sequence[float], sketches: Sequence[str]) -> ItemForm | None:
        """Return the form of an entry in a table of its own, whose figures and sketches tell their places.

        None where it holds more than these, or not all of them.
        """
        count = len(trial)
        irregular = [(place, self._shared(statistics)) for place, statistics in trial.irregular.items()]
        regular = [place for place in range(count) if place not in trial.irregular]
        held = [figure for place in regular for figure in trial.statistics[4 * place : 4 * place + 4]]
        texts = [(place, text) for place in range(count) if (text := trial.item(place).sketch) is not None]
        if sorted(held) != sorted(figures) or sorted(text for _, text in texts) != sorted(sketches):
            return None
        if trial.has_files or trial.has_checksums:
            return None
        codes = [(self.place_code(trial.place(each)), self.sort_code(trial.sort(each))) for each in range(count)]
        places, sorts = (array("I", column).tobytes() for column in (zip(*codes, strict=True) if codes else ((), ())))
        told = b"".join(b"\0\0\0\0" if place in trial.irregular else b"\1\1\1\1" for place in range(count))
        order = np.array([figures.index(figure) for figure in held], np.intp)
        with_sketch = [(sketches.index(text), place) for place, text in texts]
        return ItemForm(count, places, sorts, told, order, irregular, with_sketch)

    def add_alike(
        self,
        entries: Sequence[str],
        forms: Sequence[ItemForm],
        figures: npt.NDArray[np.float64],
        sketches: Sequence[str],
    ) -> list[ItemSlice]:
        """Add entries of known forms, whose figures and sketches follow each other; return the items of each."""
        start, counts = len(self.places), [form.count for form in forms]
        owners = np.arange(len(self.entries), len(self.entries) + len(entries), dtype=np.uint32)
        self.entries += entries
        self.owners.frombytes(owners.repeat(counts).tobytes())
        self.places.frombytes(b"".join([form.places for form in forms]))
        self.sorts.frombytes(b"".join([form.sorts for form in forms]))
        figures = figures[_in_order(forms)]
        told = np.frombuffer(b"".join([form.told for form in forms]), np.bool_)
        if len(told) > len(figures):
            spread = np.zeros(len(told))
            spread[told] = figures
            figures = spread
        self.statistics.frombytes(figures.tobytes())
        first, slices = 0, []
        for form, count in zip(forms, counts, strict=True):
            for place, statistics in form.irregular:
                self.irregular[start + place] = statistics
            if self._keeps_sketches:
                for number, place in form.sketches:
                    self._sketches.add(start + place, sketches[first + number])
            first += len(form.sketches)
            slices.append(ItemSlice(self, start, start + count))
            start += count
        return slices

    def add_beside(self, checksum: str | None, file: str | None, sketch: Any) -> None:
        """Add to the last item what is recorded beside its statistics."""
        number = len(self.places) - 1
        if checksum is not None:
            _put(self._checksums, number, checksum)
        if file is not None:
            _put(self._files, number, file)
        if sketch is not None and self._keeps_sketches:
            self._sketches.add(number, sketch)

    def place_code(self, place: Place) -> int:
        """Return the code of what an item is to its call."""
        code = self._known_places.get(place)
        if code is None:
            code = self._coded(place, self._known_places, self._place_list)
            self._suffixes.append("".join(f".{part}" for part in suffix_of(place[0], place[1])))
        return code

    def sort_code(self, sort: Sort) -> int:
        """Return the code of what an item is."""
        code = self._known_sorts.get(sort)
        if code is None:
            code = self._coded(sort, self._known_sorts, self._sort_list)
            self._sizes.append(math.prod(sort[3]) if isinstance(sort[3], tuple) else 0)
            if sort[0] == "value":
                self.plain_sorts.add(code)
        return code

    def item(self, number: int) -> Item:
        """Return the item as a value of its own."""
        place = number & ((_KEPT if len(self.places) <= _KEPT else _KEPT_OF_MANY) - 1)
        kept = self._kept.get(place)
        if kept is not None and kept[0] == number:
            return kept[1]
        item = self._made(number)
        self._kept[place] = number, item
        return item

    def _made(self, number: int) -> Item:
        state, path, keyword = self._place_list[self.places[number]]
        kind, type_name, dtype, shape, requires_grad = self._sort_list[self.sorts[number]]
        first = 4 * number
        maximum, minimum, mean, norm = self.irregular.get(number) or self.statistics[first : first + 4]
        checksum = self._checksums[number] if number < len(self._checksums) else None
        if self.value_checksums and kind == "value" and maximum is not None:
            checksum = f"{zlib.crc32(str(maximum).encode()):08x}"
        file = self._files[number] if number < len(self._files) else None
        entry = self.entries[self.owners[number]]
        return Item(
            entry, state, path, keyword, kind, type_name, dtype, shape, maximum, minimum, mean, norm, requires_grad,
            checksum, file, self._sketches.text(number),
        )  # fmt: skip

    def name(self, number: int) -> str:
        """Return ``Item.name`` of the item without making it."""
        return self.entries[self.owners[number]] + self._suffixes[self.places[number]]

    def names(self, numbers: Sequence[int] | npt.NDArray[np.int32]) -> list[str]:
        """Return the names of many items."""
        chosen = np.asarray(numbers, np.intp)
        owners, places = (np.frombuffer(column, np.uint32)[chosen].tolist() for column in (self.owners, self.places))
        return [*map(add, map(self.entries.__getitem__, owners), map(self._suffixes.__getitem__, places))]

    def sort(self, number: int) -> Sort:
        return self._sort_list[self.sorts[number]]

    def extremes(self, number: int) -> tuple[Statistic, Statistic]:
        """Return Max and Min of the item without making it."""
        irregular = self.irregular.get(number)
        return (
            irregular[:2] if irregular is not None else (self.statistics[4 * number], self.statistics[4 * number + 1])
        )

    @cached_property
    def finite(self) -> bytes:
        """Whether Max and Min are finite, a byte for each item that was added until it is asked for."""
        extremes = np.frombuffer(self.statistics, np.float64).reshape(-1, 4)[:, :2]
        return np.isfinite(extremes).all(axis=1).tobytes()

    def elements(self, number: int) -> int:
        """Return how many elements the item has; 0 where its shape is no tuple."""
        return self._sizes[self.sorts[number]]

    def place(self, number: int) -> Place:
        return self._place_list[self.places[number]]

    def state(self, number: int) -> str:
        return self._place_list[self.places[number]][0]

    @property
    def sizes(self) -> list[int]:
        """How many elements an item has, by the code that ``sorts`` holds; 0 where its shape is no tuple."""
        return self._sizes

    @property
    def known_sorts(self) -> list[Sort]:
        """What items are, by the code that ``sorts`` holds."""
        return self._sort_list

    def layouts(self) -> bytes:
        """Return place and sort of all items, of which an ``ItemSlice`` tells its own."""
        codes = [np.frombuffer(column, np.uint32) for column in (self.places, self.sorts)]
        return np.stack(codes, axis=1).tobytes()

    @property
    def suffixes(self) -> list[str]:
        """What follows the entry in the name of an item, with its dot, by the code that ``places`` holds."""
        return self._suffixes

    @property
    def has_sketches(self) -> bool:
        """Whether any item has a sketch."""
        return bool(self._sketches)

    def sketches(self, numbers: Sequence[int] | npt.NDArray[np.int32]) -> np.ndarray:
        """Return the sketches of these items, (n, 16); NaN in the rows of those without one."""
        return self._sketches.numbers(numbers)

    @property
    def has_checksums(self) -> bool:
        return bool(self._checksums)

    @property
    def has_files(self) -> bool:
        return bool(self._files)

    @staticmethod
    def _coded(value: Any, known: dict[Any, int], listed: list[Any]) -> int:
        """The code of a new value."""
        code = known[value] = len(listed)
        listed.append(value)
        return code

    def _shared(self, statistics: FourStatistics) -> FourStatistics:
        """One tuple for all items with the statistics of one plain value."""
        value = statistics[0]
        if any(each is not value for each in statistics):
            return statistics
        return self._known_irregular.setdefault((type(value), value), statistics)


def _in_order(forms: Sequence[ItemForm]) -> npt.NDArray[np.intp]:
    """The places of the figures of entries that follow each other, in the order of their statistics."""
    sizes = np.array([len(form.order) for form in forms], np.intp)
    return np.concatenate([form.order for form in forms]) + (np.cumsum(sizes) - sizes).repeat(sizes)


def _put(column: list[str | None], number: int, text: str) -> None:
    column.extend([None] * (number - len(column)))
    column.append(text)


class ItemSlice(Sequence[Item]):
    """The items of one entry, made when they are asked for."""

    __slots__ = ("_length", "start", "table")

    def __init__(self, table: ItemTable, start: int, stop: int) -> None:
        self.table, self.start = table, start
        self._length = stop - start  # small numbers take no memory of their own

    def __len__(self) -> int:
        return self._length

    @property
    def stop(self) -> int:
        return self.start + self._length

    def __iter__(self) -> Iterator[Item]:
        return map(self.table.item, range(self.start, self.stop))

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        numbers = range(self.start, self.stop)[place]
        return self.table.item(numbers) if isinstance(numbers, int) else list(map(self.table.item, numbers))

    def layout(self, layouts: bytes) -> bytes:
        """Tell what the items are, their statistics apart: equal for calls of one function with arguments of one kind.

        ``layouts``: those of the table.
        """
        return layouts[_LAYOUT * self.start : _LAYOUT * self.stop]

    @property
    def hold_values(self) -> bool:
        """Whether any item is a plain value; none need be made for it."""
        plain = self.table.plain_sorts
        return bool(plain) and not plain.isdisjoint(self.table.sorts[self.start : self.stop])
