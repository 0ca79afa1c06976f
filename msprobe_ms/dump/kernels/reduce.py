"""Reduce tensors of kernels to ``statistic.csv`` in the framework's own columns, where it writes none itself."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from msprobe_ms.arrays.dtypes import narrow_width
from msprobe_ms.arrays.statistics import Statistic, Statistics, statistics
from msprobe_ms.dump.kernels.kernel_files import (
    DATA_SIZE,
    DATA_TYPE,
    LEADING,
    NAN_COUNT,
    NEGATIVE_INF_COUNT,
    POSITIVE_INF_COUNT,
    SHAPE,
    STATISTIC,
    VALUES,
    KernelFile,
    read_table,
)
from msprobe_ms.support.errors import MsprobeError, UsageError
from msprobe_ms.support.files import DEFAULT, Permissions, replacing
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import and_more
from msprobe_ms.support.translation import tr, tr_list

Compute = Callable[[np.ndarray, Statistics], Statistic]


def _share(test: Callable[[np.ndarray], np.ndarray]) -> Compute:
    """How many elements pass; complex numbers are asked for their real part."""

    def count(array: np.ndarray, _: Statistics) -> int:
        with np.errstate(invalid="ignore"):
            return int(np.count_nonzero(test(array.real)))

    return count


def _digest(algorithm: str) -> Compute:
    def digest(array: np.ndarray, _: Statistics) -> str:
        raw: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return hashlib.new(algorithm, raw, usedforsecurity=False).hexdigest()

    return digest


def _statistic(name: str) -> Compute:
    read = attrgetter(name)
    return lambda _, figures: read(figures)


_MD5 = ("MD5", _digest("md5"))
#: Category → its column and what fills it. "Negative zero" counts what is below zero, "positive zero" what is above.
_CATEGORIES: Mapping[str, tuple[str, Compute]] = MappingProxyType(
    {
        "max": (VALUES[0], _statistic("maximum")),
        "min": (VALUES[1], _statistic("minimum")),
        "avg": (VALUES[2], _statistic("mean")),
        "l2norm": (VALUES[3], _statistic("norm")),
        "count": ("Count", lambda array, _: array.size),
        "negative zero count": ("Negative Zero Count", _share(lambda array: array < 0)),
        "positive zero count": ("Positive Zero Count", _share(lambda array: array > 0)),
        "zero count": ("Zero Count", _share(lambda array: array == 0)),
        "nan count": (NAN_COUNT, _share(np.isnan)),
        "negative inf count": (NEGATIVE_INF_COUNT, _share(np.isneginf)),
        "positive inf count": (POSITIVE_INF_COUNT, _share(np.isposinf)),
        "md5": _MD5,
        "hash:md5": _MD5,
        "hash:sha1": ("SHA1", _digest("sha1")),
    }
)
_ALIASES = {"mean": "avg", "hash": "md5"}
#: The first columns of every table.
_FIXED = (*LEADING, DATA_SIZE, DATA_TYPE, SHAPE)


def reduce(
    files: Sequence[KernelFile],
    categories: Sequence[str] = ("max", "min", "avg", "l2norm"),
    permissions: Permissions = DEFAULT,
) -> list[Path]:
    """Write ``statistic.csv`` into each folder of ``files``, then remove these files; return the tables.

    ``categories`` are those of docs/format.md, "statistic.csv": max, min, mean (or avg), l2norm, negative zero count
    (elements below zero), positive zero count (above), zero count, nan count, negative inf count, positive inf count,
    count, hash (md5, hash:md5, hash:sha1). A table that is there already keeps its rows. Files whose tensor cannot be
    read stay, and the log says so. Rows of tables among ``files`` stay as they are.

    :raises UsageError: an unknown category
    :raises OSError: the disk refuses; no file is removed whose row is not in a table
    """
    figures = [_category(name) for name in dict.fromkeys(_ALIASES.get(name, name) for name in categories)]
    folders: dict[Path, list[KernelFile]] = {}
    for file in files:
        if file.statistics is None:
            folders.setdefault(file.path.parent, []).append(file)
    unread: list[str] = []
    for folder, inside in folders.items():
        _reduce_folder(folder / STATISTIC, inside, dict(figures), permissions, unread)
    if unread:
        logger.warning(
            tr(
                "{unread}; the file stays{and_more}",
                unread=unread[0],
                and_more=and_more(len(unread) - 1, tr(", and so do ")),
            )
        )
    return [folder / STATISTIC for folder in folders]


def _category(name: str) -> tuple[str, Compute]:
    found = _CATEGORIES.get(name)
    if found is None:
        accepted = tr_list([*_CATEGORIES, *_ALIASES])
        raise UsageError(
            tr("statistic category {name} is not known; accepted are {accepted}", name=repr(name), accepted=accepted)
        )
    return found


def _reduce_folder(
    table: Path,
    files: Iterable[KernelFile],
    figures: Mapping[str, Compute],
    permissions: Permissions,
    unread: list[str],
) -> None:
    """What cannot be read of ``files`` goes to ``unread``."""
    header, rows = read_table(table) if table.exists() else ([], [])
    titles = list(dict.fromkeys([*(header or _FIXED), *figures]))
    reduced: list[Path] = []
    with replacing(table, permissions) as target:
        text = io.TextIOWrapper(target, encoding="utf-8", errors="replace", newline="", write_through=True)
        writer = csv.DictWriter(text, titles, restval="")
        writer.writeheader()
        writer.writerows(dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header))
        for file in files:
            try:
                row = _row(file, figures)
            except (MsprobeError, MemoryError) as error:
                unread.append(str(error))
                continue
            writer.writerow(row)
            reduced.append(file.path)
        text.detach()
    for path in reduced:
        path.unlink(missing_ok=True)


def _row(file: KernelFile, figures: Mapping[str, Compute]) -> dict[str, object]:
    _, dtype = file.header()
    array = file.load()
    whole = statistics(array)
    places = (file.op_type, file.op_name, file.task, file.stream, file.timestamp, file.io, file.slot)
    leading: dict[str, object] = dict(zip(LEADING, places, strict=True))
    width = narrow_width(dtype) if dtype else None
    return {
        **leading,
        DATA_SIZE: array.size * (width or array.itemsize),
        DATA_TYPE: dtype or "",
        SHAPE: f"({','.join(map(str, array.shape))})",
        **{title: figure(array, whole) for title, figure in figures.items()},
    }
