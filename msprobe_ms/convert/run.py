"""Convert files one by one: a bad one costs itself, nothing is overwritten unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msprobe_ms.arrays.dtypes import narrow_width
from msprobe_ms.convert.source import SUFFIXES, Source
from msprobe_ms.convert.write import WRITERS
from msprobe_ms.support.errors import DumpFormatError, MsprobeError
from msprobe_ms.support.files import DEFAULT, leads_out, replacing


@dataclass(frozen=True)
class Converted:
    """One file: what became of it. ``problem`` is "" where ``written`` was."""

    source: Path
    written: Path
    told: str = ""
    problem: str = ""


def convert(
    paths: Sequence[Path], kind: str, folder: Path | None, source: Source, *, overwrite: bool = False
) -> Iterator[Converted]:
    """Write each file of ``paths`` (folders: every tensor file in them) as ``kind``: npy, txt or csv.

    The result stands beside the file, or in ``folder``, where files of a folder keep their subfolders.
    """
    made: set[Path] = set()
    for path, inner, is_outside in _files(paths):
        target = (path.parent if folder is None else folder / inner.parent) / f"{path.stem}.{kind}"
        try:
            if is_outside:
                raise DumpFormatError(f"{path}: a link that leaves the folder; name the file itself to convert it")
            if (
                target in made
                or os.path.realpath(target) == os.path.realpath(path)
                or (target.exists() and not overwrite)
            ):
                raise DumpFormatError(f"{path}: {target} exists; {_way_out(path, target, made)}")
            yield Converted(path, target, _convert(path, target, kind, source))
            made.add(target)
        except MsprobeError as error:
            yield Converted(path, target, problem=str(error))
        except OSError as error:
            reason = f"{target}: cannot be written: {error.strerror or error}"
            yield Converted(path, target, problem=reason)


def _way_out(path: Path, target: Path, made: set[Path]) -> str:
    if target in made:
        return "another file of this run became it; convert them into different folders"
    return (
        "give another folder with -o"
        if os.path.realpath(target) == os.path.realpath(path)
        else "--overwrite replaces it"
    )


def _convert(path: Path, target: Path, kind: str, source: Source) -> str:
    """What was written, in words."""
    array, dtype = source.read(path)
    DEFAULT.make_folder(target.parent)
    with replacing(target) as file:
        WRITERS[kind](file, array, dtype)
    told = f"{dtype} {tuple(array.shape)}"
    if narrow_width(dtype):
        told += ", as float32"
    if kind == "csv" and array.ndim > 2:
        told += f", as {array.size // max(1, array.shape[-1])} rows of {array.shape[-1]}"
    if path.suffix == ".bin" and source.shape is None and array.ndim == 1:
        told += "; if it has another shape, --shape says so"
    return told


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, Path, bool]]:
    """Every file with its place below the folder it was found in, and whether it is a link that leaves that folder."""
    for path in paths:
        if not path.is_dir():
            yield path, Path(path.name), False
            continue
        for above, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                file = Path(above, name)
                if file.suffix in SUFFIXES:
                    yield file, file.relative_to(path), leads_out(file, path)
