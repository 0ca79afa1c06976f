"""Convert the dump files of Ascend's devices: each tensor becomes a file of its own, in the layout asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.device_dump import StoredTensor, read_array, read_bytes, read_tensors
from msprobe_ms.arrays.layouts import BLOCKED, convert_layout
from msprobe_ms.arrays.npy import write_npy
from msprobe_ms.convert import Converted, too_large, write_text
from msprobe_ms.support.errors import DumpFormatError, MsprobeError
from msprobe_ms.support.files import DEFAULT, leads_out, replacing
from msprobe_ms.support.translation import tr

#: C0 of blocks that are cut here, whatever the dtype, as in the tool whose command this is.
_WIDTH = 16


@dataclass(frozen=True)
class Wanted:
    """What to write: the layout and the tensor's own shape (None: as stored), one input or output, the kind of file."""

    layout: str | None = None
    shape: tuple[int, ...] | None = None
    output: int | None = None
    input: int | None = None
    kind: str = "npy"
    overwrite: bool = False

    def takes(self, tensor: StoredTensor) -> bool:
        """Whether this tensor is meant; buffers and workspaces are where nothing is chosen."""
        if self.output is None and self.input is None:
            return tensor.is_typed or self.layout is None
        chosen = ("output", self.output) if self.output is not None else ("input", self.input)
        return (tensor.role, tensor.index) == chosen


def convert_device_dumps(paths: Sequence[Path], folder: Path, wanted: Wanted) -> Iterator[Converted]:
    """Write the tensors of each file, and of each file that lies in a folder of ``paths``, into ``folder``."""
    made: set[Path] = set()
    for path, is_outside in _files(paths):
        try:
            if is_outside:
                raise DumpFormatError(
                    tr("{path}: a link that leaves the folder; name the file itself to convert it", path=path)
                )
            tensors = [tensor for tensor in read_tensors(path) if wanted.takes(tensor)]
            if not tensors:
                raise DumpFormatError(tr("{path}: no such tensor in it", path=path))
        except MsprobeError as error:
            yield Converted(path, folder, problem=str(error))
            continue
        for tensor in tensors:
            yield _converted(path, tensor, folder, wanted, made)


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    for path in paths:
        if path.is_dir():
            yield from ((file, leads_out(file, path)) for file in sorted(path.iterdir()) if not file.is_dir())
        else:
            yield path, False


def _converted(path: Path, tensor: StoredTensor, folder: Path, wanted: Wanted, made: set[Path]) -> Converted:
    target = folder
    try:
        if not tensor.is_typed:
            target = _claimed(folder / f"{path.name}.{tensor.name}.bin", wanted, made)
            _write(target, read_bytes(path, tensor))
            return Converted(path, target, tr("{size} bytes", size=tensor.size))
        array, dtype = read_array(path, tensor)
        layout, told = tensor.layout, ""
        if wanted.layout is not None:
            shape = wanted.shape or tensor.original if layout in BLOCKED else None
            stored, layout = array, wanted.layout
            try:
                array = convert_layout(stored, tensor.layout, layout, shape, _WIDTH)
            except DumpFormatError as error:
                raise DumpFormatError(f"{path}: {tensor.name}: {error}") from error
            told = _told_padding(stored, array, tensor.layout, shape)
        target = _claimed(folder / _name(path, tensor, array, dtype, layout, wanted), wanted, made)
        if wanted.kind == "bin":
            _write(target, np.ascontiguousarray(array).tobytes())
        else:
            _write(target, (array, dtype), wanted.kind)
        return Converted(path, target, f"{dtype} {tuple(array.shape)} {layout}{told}")
    except MsprobeError as error:
        return Converted(path, target, problem=str(error))
    except MemoryError:
        return Converted(path, target, problem=too_large(path))
    except OSError as error:
        return Converted(
            path,
            target,
            problem=tr("{target}: cannot be written: {strerror}", target=target, strerror=error.strerror or error),
        )


def _told_padding(stored: np.ndarray, array: np.ndarray, layout: str, shape: tuple[int, ...] | None) -> str:
    if layout not in BLOCKED or array.size > stored.size:
        return ""
    if shape is None and array.size == stored.size:
        return tr(", with its padding: nothing says the tensor's own shape; -s does")
    has_values = np.count_nonzero(stored) != np.count_nonzero(array)
    return tr("; its padding is not zero, so the shape may be another") if has_values else ""


def _name(path: Path, tensor: StoredTensor, array: np.ndarray, dtype: str, layout: str, wanted: Wanted) -> str:
    """``FILE.output.0.npy``; with the shape where the layout is converted, and what bytes alone do not tell."""
    lengths = "x".join(map(str, array.shape))
    parts = [path.name, tensor.name]
    if wanted.kind == "bin":
        parts += [str(array.size), dtype if array.dtype.name == "bool" else array.dtype.name, layout]
    elif wanted.kind == "msnpy":
        parts.append(layout)
    elif wanted.layout is not None:
        parts.append(lengths)
    return ".".join([*(part for part in parts if part), wanted.kind.removeprefix("ms")])


def _claimed(target: Path, wanted: Wanted, made: set[Path]) -> Path:
    if target in made:
        raise DumpFormatError(tr("{target}: another tensor of this run became it", target=target))
    if target.exists() and not wanted.overwrite:
        raise DumpFormatError(tr("{target} exists; --overwrite replaces it", target=target))
    made.add(target)
    return target


def _write(target: Path, content: bytes | tuple[np.ndarray, str], kind: str = "bin") -> None:
    DEFAULT.make_folder(target.parent)
    with replacing(target) as file:
        if isinstance(content, bytes):
            file.write(content)
        elif kind == "txt":
            write_text(file, *content)
        else:
            write_npy(file, content[0])
