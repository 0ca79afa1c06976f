"""Find where NaN and infinity come from: the first entry whose inputs are finite and whose output is not."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.dump.dialects import outside_frameworks
from msprobe_ms.dump.kernels.entries import read_kernels
from msprobe_ms.dump.kernels.kernel_files import find_kernel_folders, read_folders
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import PARAMETER
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import DumpFormatError, MsprobeError
from msprobe_ms.support.translation import tr

_Test = Callable[[Item], str]


@dataclass(frozen=True)
class NonFiniteValue:
    """An item that holds a NaN or an infinity, and where.

    ``entry``   the kernel, API or Cell: ``Kernel.Log.0.forward``
    ``item``    ``output.0``
    ``holds``   ``NaN``, ``inf``, ``-inf``
    ``cell``    the entry of the enclosing Cell; "" where none is known
    ``scope``   the path of a compiled kernel; "" for others
    ``file``    the tensor's file, or the table that holds its statistics; "" where neither is known
    ``called``  the source line; "" where none is known
    """

    entry: str
    item: str
    holds: str
    cell: str = ""
    scope: str = ""
    file: str = ""
    called: str = ""


@dataclass(frozen=True)
class FirstNonFinite:
    """First entry of one dump that makes NaN or infinity, if any.

    ``first``     the first item that is not finite although everything its entry takes in is; None where there is none
    ``first_nan`` the same asked of NaN alone, where that is another: infinities may be meant, as in masks
    ``outside``   what was not finite when it came in, before anything recorded had made it so
    ``entries``   how many entries hold something that is not finite
    """

    dump: str
    first: NonFiniteValue | None
    first_nan: NonFiniteValue | None
    outside: NonFiniteValue | None
    entries: int


def first_bad(path: Path) -> list[FirstNonFinite]:
    """Search ``path``: a dump.json, a rank or step folder, or raw kernel files; one answer a rank and step.

    :raises MsprobeError: there is no dump, or it cannot be read
    """
    return [search(dump, name) for name, dump in dumps_in(path)]


def search(dump: Dump, name: str = "") -> FirstNonFinite:
    """Search one dump in execution order."""
    entries = list(dump.entries.values())
    first = _first(dump, entries, _holds)
    nan = _first(dump, entries, lambda item: "NaN" if _holds(item) == "NaN" else "")
    bad = sum(any(map(_holds, entry.items)) for entry in entries)
    return FirstNonFinite(name or str(dump.path), first, None if nan == first else nan, _outside(dump, entries), bad)


def write_answer(answers: Sequence[FirstNonFinite], folder: Path) -> Path:
    """Write ``anomaly_analyze_{ns}.json``: the answers by dump. Raises UsageError: the folder cannot be written."""
    path = folder / f"anomaly_analyze_{time.time_ns()}.json"
    with writing(path) as file:
        file.write(json.dumps({each.dump: asdict(each) for each in answers}, indent=1).encode())
    return path


def answer_lines(answer: FirstNonFinite) -> Iterator[str]:
    """Describe an answer for the terminal."""
    yield f"{answer.dump}:"
    if not answer.entries:
        yield tr("  every value is finite")
        return
    if answer.first is not None:
        yield tr(
            "  the first that is not finite although its inputs are: {item} holds {holds}",
            item=answer.first.item,
            holds=answer.first.holds,
        )
        yield from _place_lines(answer.first)
    if answer.first_nan is not None:
        yield tr("  the first NaN made of values that hold none (an infinity may be meant, as in a mask):")
        yield from _place_lines(answer.first_nan)
    if answer.outside is not None:
        yield tr(
            "  {holds} came in from outside: data, a weight, or code that was not recorded:", holds=answer.outside.holds
        )
        yield from _place_lines(answer.outside)
    yield tr("  {entries} of its entries hold something that is not finite", entries=answer.entries)


def _place_lines(bad: NonFiniteValue) -> Iterator[str]:
    yield f"    {bad.entry}.{bad.item}"
    for title, value in (("in", bad.cell), ("scope", bad.scope), ("file", bad.file), ("called at", bad.called)):
        if value:
            yield f"    {title} {value}"


def dumps_in(path: Path) -> Iterator[tuple[str, Dump]]:
    """Yield the dumps below ``path``, each with its name; raw files of kernels are one a rank and step.

    A dump.json says more than raw files: it comes first where there are both."""
    try:
        found = find_dumps(path)
    except DumpFormatError as error:
        if steps := _steps(path):
            for each in steps:
                yield from dumps_in(each)
            return
        if not (path.is_dir() and find_kernel_folders(path)):
            raise error
        yield from (
            (tr("{path} rank {rank} step {step}", path=path, rank=rank, step=step), dump)
            for rank, step, dump in raw_kernels(path)
        )
        return
    for file in found.values():
        yield str(file), read_dump(file, sketches=False)


def raw_kernels(path: Path) -> Iterator[tuple[int, int, Dump]]:
    """Yield the rank, the step and the dump of raw files of kernels below ``path``; nothing where there are none."""
    folders = find_kernel_folders(path) if path.is_dir() else []
    for rank, step in dict.fromkeys((folder.rank, folder.step) for folder in folders):
        files = read_folders([folder for folder in folders if (folder.rank, folder.step) == (rank, step)])
        yield rank, step, read_kernels(path, files)


def _steps(path: Path) -> list[Path]:
    """The steps of a dump of several, in their order; [] where one of them is meant."""
    found = {int(name): folder for folder in path.glob("step*") if (name := folder.name[4:]).isdecimal()}
    steps = [found[number] for number in sorted(found)]
    return steps if len(steps) > 1 and all(any(step.rglob("dump.json")) for step in steps) else []


def _first(dump: Dump, entries: Sequence[Entry], holds: _Test) -> NonFiniteValue | None:
    clean = True
    for entry in entries:
        inputs = [item for item in entry.items if item.state != "output" and holds(item)]
        outputs = [item for item in entry.items if item.state == "output" and holds(item)]
        overwritten = clean and all(_is_overwritten(dump, item, outputs) for item in inputs)
        if outputs and (not inputs or overwritten) and not _is_kept(entry):
            return _bad(dump, entry, outputs[0])
        clean = clean and not inputs and not outputs
    return None


def _is_overwritten(dump: Dump, item: Item, outputs: Sequence[Item]) -> bool:
    """Whether an input is an output: the kernel wrote it in place, and files show what it wrote."""
    return any(_is_same(dump, item, each) for each in outputs)


def _is_same(dump: Dump, item: Item, other: Item) -> bool:
    # As texts NaN equals NaN.
    if str(_statistics(item)) != str(_statistics(other)):
        return False
    try:
        return np.array_equal(dump.tensors.load(item), dump.tensors.load(other), equal_nan=True)
    except (MsprobeError, OSError):
        return _holds(item) != "NaN"  # of any two tensors with a NaN the statistics are the same


def _statistics(item: Item) -> tuple[object, ...]:
    return item.dtype, item.shape, item.maximum, item.minimum, item.mean, item.norm


def _outside(dump: Dump, entries: Sequence[Entry]) -> NonFiniteValue | None:
    """What the first entry that holds something takes in, when that is not finite."""
    for entry in entries:
        bad = [item for item in entry.items if _holds(item)]
        if bad:
            outputs = [item for item in bad if item.state == "output"]
            taken = [item for item in bad if item.state != "output" and not _is_overwritten(dump, item, outputs)]
            if taken or _is_kept(entry):
                return _bad(dump, entry, (taken or bad)[0])
            return None
    return None


def _is_kept(entry: Entry) -> bool:
    """A parameter of a compiled graph: no kernel."""
    return entry.parsed is not None and entry.parsed.prefix == PARAMETER


def _bad(dump: Dump, entry: Entry, item: Item) -> NonFiniteValue:
    frames = outside_frameworks(entry.stack)
    called = " ".join(frames[0].split()) if frames else ""
    return NonFiniteValue(
        entry.name, item.suffix, _holds(item), entry.parent or "", entry.scope, dump.tensors.where(item), called
    )


def _holds(item: Item) -> str:
    """What an item holds that is not finite; "" for nothing.

    A mean or norm that overflowed beside finite extremes is no fault of the values; one that is NaN is.
    """
    if item.kind != "tensor":
        return ""
    statistics = [item.maximum, item.minimum, item.mean, item.norm]
    if any(isinstance(value, float) and math.isnan(value) for value in statistics):
        return "NaN"
    return next((f"{value}" for value in statistics[:2] if isinstance(value, float) and math.isinf(value)), "")
