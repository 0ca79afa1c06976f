"""Tensor files beside each other: two files, or the pairs that a metadata.json names; in the columns of msit.

metadata.json is ``{data_id: {token_id: [golden file, file under suspicion]}}``, as msit's manual mapping writes it.
Paths that are not absolute are looked for beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from msprobe_ms.arrays.metrics import (
    COSINE,
    KL_DIVERGENCE,
    MAX_ABSOLUTE,
    MAX_RELATIVE,
    MEAN_ABSOLUTE,
    MEAN_RELATIVE,
    RELATIVE_EUCLIDEAN,
    Measured,
    Missing,
    tensor_difference,
)
from msprobe_ms.arrays.npy import check_regular, load_array
from msprobe_ms.arrays.statistics import statistics
from msprobe_ms.arrays.torch_file import read_tensor
from msprobe_ms.comparison.measuring.tolerances import Tolerances
from msprobe_ms.comparison.reporting.colours import OWN_ROWS
from msprobe_ms.comparison.reporting.csv_table import Cell, figure_cell
from msprobe_ms.comparison.reporting.files import claimed_timestamp, write_table
from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.support.errors import MsprobeError, UsageError
from msprobe_ms.support.json_files import read_object
from msprobe_ms.support.text import show
from msprobe_ms.support.translation import tr, tr_list

SUFFIXES = (".npy", ".bin", ".pt", ".pth")
_METADATA = "metadata.json"
_LARGEST_METADATA = 64 << 20
_FORM = tr('expected {"data id": {"token id": ["golden file", "file under suspicion"]}}')

#: Titles of a side's columns, and of the metrics, in msit's order.
_OF_SIDE = ("data_path", "op_type", "dtype", "shape", "max_value", "min_value", "mean_value")
_METRICS = {
    "cosine_similarity": COSINE,
    "max_relative_error": MAX_RELATIVE,
    "mean_relative_error": MEAN_RELATIVE,
    "max_absolute_error": MAX_ABSOLUTE,
    "mean_absolute_error": MEAN_ABSOLUTE,
    "kl_divergence": KL_DIVERGENCE,
    "relative_euclidean_distance": RELATIVE_EUCLIDEAN,
}
TITLES = (
    "token_id", "data_id", *(f"golden_{title}" for title in _OF_SIDE), *(f"my_{title}" for title in _OF_SIDE),
    *_METRICS, "cmp_fail_reason",
)  # fmt: skip


class TensorPair(NamedTuple):
    """Two files that hold one tensor, and what metadata.json calls it."""

    golden: Path
    target: Path
    data_id: str = ""
    token_id: str = ""


@dataclass(frozen=True, slots=True)
class PairRow:
    """One pair, measured; without metrics where it could not be, for which ``failure`` says why."""

    pair: TensorPair
    cells: Sequence[Cell]
    metrics: dict[str, Measured]
    deviation: float
    #: Up to which deviation the dtypes explain it.
    tolerance: float
    failure: str

    @property
    def is_unread(self) -> bool:
        """Whether a file could not be read, of which nothing can be said."""
        return not self.metrics

    @property
    def differs(self) -> bool:
        return not self.is_unread and (bool(self.failure) or self.deviation > self.tolerance)


def find_pairs(target: Path, golden: Path) -> list[TensorPair] | None:
    """Return the pairs that are meant where ``golden`` is a tensor file, a metadata.json or a folder with one.

    None where it is something else.

    Raises UsageError where the other side is none, or metadata.json is none.
    """
    for file in (golden, golden / _METADATA, golden / "golden_tensor" / _METADATA):
        if file.name == _METADATA and file.is_file():
            return list(_read_metadata(file))
    if golden.suffix not in SUFFIXES or not golden.is_file():
        return None
    if target.suffix not in SUFFIXES or not target.is_file():
        raise UsageError(
            tr(
                "compare: {golden} is a tensor file, and {target} is none; give two of {suffixes}",
                golden=golden,
                target=target,
                suffixes=tr_list(SUFFIXES),
            )
        )
    return [TensorPair(golden, target)]


def _read_metadata(file: Path) -> Iterator[TensorPair]:
    for data_id, tokens in read_object(file, _LARGEST_METADATA, _FORM).items():
        if not isinstance(tokens, dict):
            raise UsageError(
                tr(
                    "{file}: {data_id}: {tokens} is not accepted; {form}",
                    file=file,
                    data_id=show(data_id),
                    tokens=show(tokens),
                    form=_FORM,
                )
            )
        for token_id, paths in tokens.items():
            if not isinstance(paths, list) or len(paths) < 2 or not all(isinstance(path, str) for path in paths[:2]):
                raise UsageError(
                    tr(
                        "{file}: {data_id}.{token_id}: {paths} is not accepted; {form}",
                        file=file,
                        data_id=show(data_id),
                        token_id=show(token_id),
                        paths=show(paths),
                        form=_FORM,
                    )
                )
            yield TensorPair(file.parent / paths[0], file.parent / paths[1], data_id, token_id)


def compare_pairs(pairs: Sequence[TensorPair]) -> Iterator[PairRow]:
    """Measure each pair; what cannot be read or measured has a reason."""
    for pair in pairs:
        sides: list[_Tensor | None] = []
        failure = ""
        for path in (pair.golden, pair.target):
            try:
                sides.append(_load(path))
            except MsprobeError as error:
                sides.append(None)
                failure = failure or str(error)
            except MemoryError:
                sides.append(None)
                failure = failure or tr("{path}: not enough memory for it", path=path)
        golden, target = sides
        metrics: dict[str, Measured] = {}
        deviation = tolerance = 0.0
        if golden is not None and target is not None:
            found = tensor_difference(target[0], golden[0], more=True)
            metrics, deviation = found.metrics, found.relative_l2
            tolerance = Tolerances().bound(target[1], golden[1], exact=True, same_framework=False, gradient=False)
            failure = next((f"{value}" for value in metrics.values() if value in _FAILURES), "")
        cells = [pair.token_id, pair.data_id, *_side(pair.golden, golden), *_side(pair.target, target)]
        cells += [_cell(metrics.get(name)) for name in _METRICS.values()]
        yield PairRow(pair, [*cells, failure], metrics, deviation, tolerance, failure)


_FAILURES = (Missing.SHAPE, Missing.NON_FINITE)
_Tensor = tuple[np.ndarray, str]


def _load(path: Path) -> _Tensor:
    if path.suffix in (".npy", ".bin"):
        array = load_array(path, None)
        return array, array.dtype.name
    check_regular(path)
    return read_tensor(path)


def _side(path: Path, tensor: _Tensor | None) -> list[Cell]:
    if tensor is None:
        return [str(path), None, None, None, None, None, None]
    array, dtype = tensor
    figures = statistics(array)
    return [str(path), None, dtype, str(list(array.shape)), *(_cell(figure) for figure in tuple(figures)[:3])]


def _cell(value: object) -> Cell:
    if isinstance(value, (bool, int, float)) and not isinstance(value, Missing):
        return figure_cell(float(value))
    return None if value is None else str(value)


def write_pairs(rows: Sequence[PairRow], folder: Path, *, csv: bool = True) -> Path:
    """Write ``msit_cmp_report_{time}.csv`` (or ``.xlsx``), never over another. Raises UsageError."""
    with claimed_timestamp(folder) as stamp:
        path = folder / f"msit_cmp_report_{stamp}.{'csv' if csv else 'xlsx'}"
        coloured = (
            (list(row.cells), RowColour.RED if row.differs or row.is_unread else RowColour.NONE) for row in rows
        )
        write_table(path, list(TITLES), coloured, OWN_ROWS)
    return path


def pair_lines(rows: Sequence[PairRow]) -> Iterator[str]:
    """Say how many agree, and of those that do not the first ones."""
    wrong = [row for row in rows if row.differs or row.is_unread]
    yield tr(
        "{which}: {count} of {other_count} pairs of files agree",
        which="DIVERGENT" if any(row.differs for row in wrong) else "INCOMPLETE" if wrong else "CONSISTENT",
        count=len(rows) - len(wrong),
        other_count=len(rows),
    )
    for row in wrong[:_MOST_TOLD] if len(rows) > 1 else rows:
        called = ".".join(filter(None, (row.pair.data_id, row.pair.token_id))) or row.pair.target.name
        yield tr("  {called}: {told}", called=called, told=row.failure or tr_list(_told(row)))
    if len(wrong) > _MOST_TOLD:
        yield tr("  and {count} more", count=len(wrong) - _MOST_TOLD)


_MOST_TOLD = 8


def _told(row: PairRow) -> Iterator[str]:
    for title, name in _METRICS.items():
        value = row.metrics[name]
        yield f"{title} {value:.6g}" if isinstance(value, float) else f"{title} {value}"
