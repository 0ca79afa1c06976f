"""The raw files of MindSpore's kernel dump: their names, `mapping.csv` and `statistic.csv`, and the tensors in them.

A folder ``rank_R/Net/{graph}/{iteration}`` holds one file a tensor (docs/format.md, "Kernel files"), named so; kernel
by kernel execution adds the dtype, GE leaves it out::

    {op_type}.{op_name}.{task}.{stream}.{timestamp}.{input|output}.{slot}.{format}[.{dtype}].{npy|bin}

Parameters and graph inputs are files of op type ``Parameter``. A name too long for the file system is a number, and
``mapping.csv`` says what for. A dump of statistics has ``statistic.csv`` in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from msprobe_ms.dump.kernels.kernel_file import KernelFile, dtype_name
from msprobe_ms.dump.kernels.tables import MAPPING, STATISTIC, read_mapping, read_statistics
from msprobe_ms.support.log import logger

#: The longest names are texts of scopes; beyond this nobody wrote them.
_LONGEST = 1 << 16
_NAME = re.compile(
    r"(?P<op_type>[^.]+)\.(?P<op_name>.+)\.(?P<task>\d{1,18})\.(?P<stream>\d{1,18})\.(?P<timestamp>\d{1,30})"
    r"\.(?P<io>input|output)\.(?P<slot>\d{1,9})(?:\.(?P<format>[^.]+))?(?:\.(?P<dtype>[^.]+))?\.(?P<suffix>npy|bin)"
)


def parse_file_name(path: Path, name: str | None = None) -> KernelFile | None:
    """The kernel file at ``path``, by its name, or by the ``name`` it stands for; None when it is no kernel file's.

    >>> file = parse_file_name(Path("MatMul.Default_fc-Dense_MatMul-op0.0.0.17.input.1.DefaultFormat.Float32.npy"))
    >>> file.op_name, file.io, file.slot, file.dtype
    ('Default_fc-Dense_MatMul-op0', 'input', 1, 'Float32')
    """
    name = path.name if name is None else name
    found = _NAME.fullmatch(name) if len(name) <= _LONGEST else None
    if found is None:
        return None
    dtype = dtype_name(found["dtype"]) if found["dtype"] else None
    return KernelFile(
        path,
        found["op_type"],
        found["op_name"],
        int(found["task"]),
        int(found["stream"]),
        int(found["timestamp"]),
        found["io"],
        int(found["slot"]),
        found["format"] or "",
        dtype,
    )


def read_kernel_files(paths: Iterable[Path]) -> list[KernelFile]:
    """The tensors that ``paths`` hold, in launch order; what is no kernel file is passed over.

    Of a ``statistic.csv`` among the paths every row is one, but for those whose tensor is there as a file. Short names
    are translated by the ``mapping.csv`` of their folder, and the table beside ``.bin`` files tells their dtype and
    shape. Nothing else is opened.

    :raises DumpFormatError: a table cannot be read
    """
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    files = [file for folder, inside in folders.items() for file in _read_folder(folder, inside)]
    return sorted(files, key=lambda file: (file.timestamp, str(file.path.parent), file.op_name, *file.order))


def _read_folder(folder: Path, paths: list[Path]) -> Iterator[KernelFile]:
    names = read_mapping(folder)
    files = [file for path in paths if (file := _named(path, names)) is not None]
    tables = [path for path in paths if path.name == STATISTIC]
    has_bytes = any(file.path.suffix == ".bin" for file in files)
    if not tables and has_bytes and (folder / STATISTIC).exists():
        tables = [folder / STATISTIC]
    rows = [row for path in tables for row in read_statistics(path)]
    told = {_identity(row): row for row in rows}
    for file in files:
        row = told.pop(_identity(file), None)
        if row is not None and file.path.suffix == ".bin":
            file = replace(file, dtype=file.dtype or row.dtype, shape=row.shape)
        yield file
    yield from (row for row in told.values() if row.path in paths)


def _named(path: Path, names: dict[str, str]) -> KernelFile | None:
    name = names.get(path.name) or names.get(path.stem)
    if name is None:
        return parse_file_name(path)
    found = parse_file_name(path, name if name.endswith(path.suffix) else name + path.suffix)
    if found is None:
        logger.warning("%s: %s says it stands for %.200r, which is no kernel file", path, MAPPING, name)
    return found


def _identity(file: KernelFile) -> tuple[object, ...]:
    return file.op_name.replace("/", "_"), file.task, file.stream, file.timestamp, file.io, file.slot
