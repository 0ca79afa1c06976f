"""The figures of a page: recorded statistics of both sides, what they are of, and what was measured of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.page.rows import Rows
from msprobe_ms.comparison.row_items import RowItems
from msprobe_ms.comparison.statistics import RELATIVES, STATISTICS
from msprobe_ms.dump.columns import Sort
from msprobe_ms.dump.model import Item
from msprobe_ms.page.columns import Codes, Columns, floats, rounded
from msprobe_ms.support.translation import tr, translated

#: Names of the statistics in columns.
_NAMES = ("max", "min", "mean", "norm")
#: Bits of the fraction of a metric: it is told in three digits.
_BITS = 15
#: Longest text of a plain value, in characters.
_LONGEST = 200
#: Dtypes of numbers that a float32 does not hold as they are.
_WIDE = frozenset(("float64", "complex128", "int32", "uint32", "int64", "uint64"))


class Figures:
    """The figures of the rows ``chosen``."""

    def __init__(self, rows: Rows, chosen: npt.NDArray[np.intp]) -> None:
        self._rows = rows
        self._chosen = chosen
        self._types, self._texts = Codes(""), Codes("")

    def add_to(self, columns: Columns) -> list[dict[str, str]]:
        """Add the columns; return the description of the metrics."""
        target, golden = (_Side(side, self._chosen, self._types, self._texts) for side in self._rows.sides)
        for place, name in enumerate(_NAMES):
            theirs = floats(golden.numbers[:, place], golden.missing[:, place])
            columns.add(f"golden_{name}", theirs)
            columns.add_beside(
                f"target_{name}", floats(target.numbers[:, place], target.missing[:, place]), f"golden_{name}", theirs
            )
        self._add_kinds(columns, {"target": target, "golden": golden})
        return [*self._add_relatives(columns, target, golden), *self._add_measured(columns)]

    def add_target_to(self, columns: Columns) -> None:
        """Add the columns of the target alone, which has no golden."""
        target = _Side(self._rows.sides[0], self._chosen, self._types, self._texts)
        for place, name in enumerate(_NAMES):
            columns.add(f"target_{name}", floats(target.numbers[:, place], target.missing[:, place]))
        self._add_kinds(columns, {"target": target})

    def _add_kinds(self, columns: Columns, sides: Mapping[str, _Side]) -> None:
        for name, side in sides.items():
            columns.add(f"{name}_type", side.types, dictionary="types")
            columns.add(f"{name}_text", side.texts, dictionary="texts")
        columns.add_json("types", self._types.values)
        columns.add_json("texts", self._texts.values)

    @staticmethod
    def _add_relatives(columns: Columns, target: _Side, golden: _Side) -> Iterator[dict[str, str]]:
        """The relative error of each statistic, as ``statistic_metrics`` has it."""
        for place, name in enumerate(RELATIVES):
            missing = target.missing[:, place] | golden.missing[:, place]
            ours, theirs = target.numbers[:, place], golden.numbers[:, place]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                relative = np.abs((ours - theirs) / theirs)
            relative[(theirs == 0) & (ours == ours)] = np.inf
            relative[(ours == theirs) | (np.isnan(ours) & np.isnan(theirs))] = 0.0
            column = f"metric_{name}"
            columns.add(column, rounded(floats(relative, missing), _BITS))
            yield {
                "name": name,
                "title": translated(tr("relative error of {statistics}", statistics=tr(STATISTICS[place]))),
                "column": column,
            }

    def _add_measured(self, columns: Columns) -> Iterator[dict[str, str]]:
        """What was measured in tensors, a column for each metric that is a number anywhere."""
        found: dict[str, npt.NDArray[np.float64]] = {}
        missing: dict[str, npt.NDArray[np.bool_]] = {}
        for place, number in enumerate(self._chosen) if self._rows.measured else ():
            for name, value in (self._rows.rows[number].measured or {}).items():
                if isinstance(value, (int, float)):
                    if name not in found:
                        found[name] = np.zeros(len(self._chosen))
                        missing[name] = np.ones(len(self._chosen), np.bool_)
                    found[name][place], missing[name][place] = value, False
        for name, values in found.items():
            column = f"metric_{name}"
            columns.add(column, rounded(floats(values, missing[name]), _BITS))
            yield {"name": name, "title": translated(tr(name.replace("_", " "))), "column": column}


class _Side:
    """Figures of one side: ``numbers`` (rows, 4) in double precision, ``missing`` (rows, 4) where they are none."""

    def __init__(self, side: RowItems, chosen: npt.NDArray[np.intp], types: Codes, texts: Codes) -> None:
        self.numbers = np.zeros((len(chosen), 4))
        self.missing = np.ones((len(chosen), 4), np.bool_)
        self.types = np.zeros(len(chosen), np.uint16)
        self.texts = np.zeros(len(chosen), np.uint32)
        self._texts = texts
        items = side.numbers[chosen]
        stored = np.flatnonzero(items >= 0)
        if side.table is not None and len(stored):
            numbers = items[stored]
            sorts = np.frombuffer(side.table.sorts, np.uint32)[numbers]
            known = side.table.known_sorts
            self.types[stored] = np.array([types.code(_type_text(sort)) for sort in known], np.uint16)[sorts]
            self.numbers[stored] = np.frombuffer(side.table.statistics, np.float64).reshape(-1, 4)[numbers]
            self.missing[stored] = np.array([sort[0] != "tensor" for sort in known])[sorts, None]
            wide = np.array([_is_wide(sort) for sort in known])[sorts]
            irregular = side.table.irregular
            for told in np.flatnonzero(wide | np.isin(numbers, list(irregular))):
                place, number = stored[told], numbers[told]
                if (figures := irregular.get(number)) is not None:
                    self._add_irregular(place, figures, known[sorts[told]][0])
                else:
                    self.texts[place] = texts.code(", ".join(f"{figure:.17g}" for figure in self.numbers[place]))
        for place, number in enumerate(chosen) if side.others else ():
            if (item := side.others.get(int(number))) is not None:
                self.types[place] = types.code(_type_text(_sort_of(item)))
                self._add_irregular(place, (item.maximum, item.minimum, item.mean, item.norm), item.kind)

    def _add_irregular(self, place: int, figures: Sequence[Statistic], kind: str) -> None:
        """Add figures that are not four floats: those of whole numbers and of empty tensors, plain values."""
        self.missing[place] = True
        if kind == "value":
            self.texts[place] = self._texts.code(str(figures[0])[:_LONGEST])
            return
        for statistic, figure in enumerate(figures):
            with suppress(OverflowError):
                if isinstance(figure, (int, float)):
                    self.numbers[place, statistic] = figure
                    self.missing[place, statistic] = False
        if any(figure is not None and not isinstance(figure, float) for figure in figures):
            self.texts[place] = self._texts.code(", ".join(str(figure)[:_LONGEST] for figure in figures))


def _sort_of(item: Item) -> Sort:
    return item.kind, item.type, item.dtype, item.shape, item.requires_grad


def _type_text(sort: Sort) -> str:
    kind, name, dtype, shape, _ = sort
    if kind == "tensor":
        return f"{dtype} {list(shape) if isinstance(shape, tuple) else shape}"
    return "null" if kind == "null" else name


def _is_wide(sort: Sort) -> bool:
    """Whether it is a tensor of numbers that a float32 does not hold as they are."""
    return sort[0] == "tensor" and parse_dtype(sort[2]).name in _WIDE
