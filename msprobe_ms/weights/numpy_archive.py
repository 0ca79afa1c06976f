"""``.npz``: a zip archive of ``.npy`` files."""

from __future__ import annotations

import math
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from msprobe_ms.arrays.npy import read_header
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr
from msprobe_ms.weights.model import Checkpoint, Weight, clean

#: How many times smaller deflate can make anything; what claims more is no archive of numbers.
_MOST_SHRUNK = 1100
#: As numpy's own bound, in bytes.
_LONGEST_HEADER = 10_000


def read(path: Path, file: BinaryIO) -> Checkpoint:
    """Read the arrays of one archive in their order; one whose header is damaged is among the ``problems``.

    :raises DumpFormatError: the archive's directory is damaged
    """
    try:
        archive = zipfile.ZipFile(file)
        records = archive.infolist()
    except Exception as error:  # a hostile directory can make zipfile raise anything
        raise DumpFormatError(tr("{path}: damaged zip archive: {error}", path=path, error=error)) from error
    found = Checkpoint(path, "numpy archive")
    for record in records:
        name = clean(record.filename.removesuffix(".npy"))
        try:
            with _open(path, archive, record) as member:
                shape, _, stored = read_header(Path(f"{path}: {name}"), member, None)
        except DumpFormatError as error:
            found.problems.append(tr("{error}", error=error))
            continue
        load = partial(_load, path, archive, record, name)
        found.add(Weight(name, stored.newbyteorder("=").name, shape, load))
    return found


def _open(path: Path, archive: zipfile.ZipFile, record: zipfile.ZipInfo) -> BinaryIO:
    try:
        with archive.open(record) as member:
            head = member.read(12)
        # numpy reads a header whole before it refuses a long one, and 4 GiB of zeros deflate to 4 MiB.
        if int.from_bytes(head[8 : 10 if head[6:7] == b"\1" else 12], "little") > _LONGEST_HEADER:
            raise ValueError(tr("its header is too long"))
        return archive.open(record)  # type: ignore[return-value]
    except Exception as error:  # as above; also a password
        raise DumpFormatError(
            tr("{path}: {filename}: {error}", path=path, filename=clean(record.filename)[:200], error=error)
        ) from error


def _load(path: Path, archive: zipfile.ZipFile, record: zipfile.ZipInfo, name: str) -> np.ndarray:
    try:
        with _open(path, archive, record) as member:
            shape, column_major, stored = read_header(Path(f"{path}: {name}"), member, None)
            length = math.prod(shape) * stored.itemsize
            if length > record.file_size or record.file_size > _MOST_SHRUNK * max(1, record.compress_size):
                raise DumpFormatError(
                    tr(
                        "{path}: {name}: shape {shape} of {stored} cannot lie in it",
                        path=path,
                        name=name,
                        shape=shape,
                        stored=stored,
                    )
                )
            data = member.read(length)
        if len(data) < length:
            raise DumpFormatError(
                tr(
                    "{path}: {name}: {count} of {length} bytes are there",
                    path=path,
                    name=name,
                    count=len(data),
                    length=length,
                )
            )
        return np.frombuffer(data, stored).reshape(shape, order="F" if column_major else "C")
    except (OSError, EOFError, ValueError, OverflowError, zipfile.BadZipFile, zlib.error) as error:
        raise DumpFormatError(tr("{path}: {name}: damaged: {error}", path=path, name=name, error=error)) from error
