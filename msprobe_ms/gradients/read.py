"""Read what task grad_probe wrote, of this package and of msprobe 1.1.0: ranks, steps, and a table of each step."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from msprobe_ms.arrays.npy import load_array
from msprobe_ms.dump.gradient_files import CHECKSUM, NAME, NORM, SHAPE, direction_file, rank_of, step_of
from msprobe_ms.support.errors import DumpFormatError, MissingTensorError, UsageError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.translation import tr

#: Bytes of a table that are read: a hundred thousand parameters take 20 MB.
_LONGEST = 256 << 20
_SIZE = re.compile(r"[0-9]{1,18}")


class Gradient(NamedTuple):
    """One row: what is known of a parameter's gradient at a step. ``shape`` and ``norm`` are None where not written."""

    shape: tuple[int, ...] | None
    norm: float | None
    checksum: str


@dataclass(frozen=True, slots=True)
class RankGradients:
    """One rank's folder, and the tables in it by step."""

    folder: Path
    tables: Mapping[int, Path]

    def read(self, step: int) -> dict[str, Gradient]:
        """Return the rows of a step by parameter, in their order.

        :raises DumpFormatError: the table cannot be read
        """
        file = self.tables[step]
        try:
            with open_regular(file) as opened:
                raw = opened.read(_LONGEST + 1)
            if len(raw) > _LONGEST:
                raise DumpFormatError(
                    tr(
                        "{file}: larger than {longest} MiB; accepted are tables of grad_probe",
                        file=file,
                        longest=_LONGEST >> 20,
                    )
                )
            rows = csv.DictReader(raw.decode("utf-8-sig").splitlines(), strict=True)
            titles = {title.lower(): title for title in rows.fieldnames or () if title}
            if NAME not in titles:
                raise DumpFormatError(
                    tr("{file}: has no column {name}; accepted are tables of task grad_probe", file=file, name=NAME)
                )
            return {row[titles[NAME]] or "": _gradient(row, titles) for row in rows}
        except OSError as error:
            raise DumpFormatError(
                tr("{file}: cannot be read: {strerror}", file=file, strerror=error.strerror or error)
            ) from None
        except (UnicodeDecodeError, csv.Error) as error:
            raise DumpFormatError(tr("{file}: is no table: {error}", file=file, error=error)) from None

    def directions(self, step: int, name: str) -> np.ndarray | None:
        """Return where a gradient is above zero, a bool array of its shape; None where that was not written.

        :raises DumpFormatError: the file is damaged, or holds something else
        """
        file = self.folder / direction_file(step, name)
        try:
            found = load_array(file, None)
        except MissingTensorError:
            return None
        if found.dtype != np.bool_:
            raise DumpFormatError(
                tr(
                    "{file}: holds {dtype}; accepted is bool, where a gradient is above zero",
                    file=file,
                    dtype=found.dtype,
                )
            )
        return found


def open_ranks(path: Path) -> dict[int, RankGradients]:
    """Return the ranks below ``path``: the ``dump_path`` of a training, or the folder of one rank.

    :raises UsageError: there are none
    """
    try:
        folders = [path] if rank_of(path) is not None else sorted(each for each in path.iterdir() if each.is_dir())
        found = {rank: _rank(each) for each in folders if (rank := rank_of(each)) is not None}
    except OSError as error:
        raise UsageError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from None
    found = {rank: each for rank, each in sorted(found.items()) if each.tables}
    if not found:
        raise UsageError(
            tr(
                "{path}: holds no gradients; accepted is the dump_path of task grad_probe, with "
                "rank0/grad_summary_0.csv",
                path=path,
            )
        )
    return found


def _rank(folder: Path) -> RankGradients:
    tables = {step: file for file in folder.iterdir() if (step := step_of(file)) is not None}
    return RankGradients(folder, dict(sorted(tables.items())))


def _gradient(row: Mapping[str, str | None], titles: Mapping[str, str]) -> Gradient:
    def text(title: str) -> str:
        return row.get(titles.get(title.lower(), "")) or ""

    sizes = text(SHAPE).strip("[]() ")
    parts = [part.strip() for part in sizes.split(",") if part.strip()]
    whole = SHAPE in titles and all(map(_SIZE.fullmatch, parts))
    try:
        norm = float(text(NORM))
    except ValueError:
        norm = None
    return Gradient(tuple(map(int, parts)) if whole else None, norm, text(CHECKSUM))
