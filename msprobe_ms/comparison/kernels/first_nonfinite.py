"""Find where NaN and infinity come from: the first entry, forward or backward, whose outputs hold what nothing that it
is computed from did.

A backward is computed from the gradient that arrives, and from what its forward took in and gave out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from msprobe_ms.comparison.reporting.files import claimed_timestamp, writing
from msprobe_ms.config.vocabulary import CHECKS
from msprobe_ms.dump.dialects import outside_frameworks
from msprobe_ms.dump.kernels.entries import read_kernels
from msprobe_ms.dump.kernels.kernel_files import find_kernel_folders, read_folders
from msprobe_ms.dump.model import Dump, Entry, Item, ancestors
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETER, PARAMETERS, PARAMETERS_GRAD, is_update, parse_entry
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import DumpFormatError, MsprobeError
from msprobe_ms.support.translation import tr

_Test = Callable[[Item], str]
#: What the names of files with these answers begin with.
_BEGINNING = "anomaly_analyze_"


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
    ``weight``  the parameter of an enclosing Cell that it is; "" where none is
    """

    entry: str
    item: str
    holds: str
    cell: str = ""
    scope: str = ""
    file: str = ""
    called: str = ""
    weight: str = ""


@dataclass(frozen=True)
class FirstNonFinite:
    """First entry of one dump that makes NaN or infinity, if any.

    ``first``     the first item that is not finite although everything its entry takes in is; None where there is none
    ``first_nan`` the same asked of NaN alone, where that is another: infinities may be meant, as in masks
    ``outside``   what was not finite when it came in, before anything recorded had made it so
    ``entries``   how many entries hold something that is not finite
    ``searched``  how many entries were searched: nothing is known where there is none
    """

    dump: str
    first: NonFiniteValue | None
    first_nan: NonFiniteValue | None
    outside: NonFiniteValue | None
    entries: int
    searched: int = 1


def first_bad(path: Path) -> list[FirstNonFinite]:
    """Search ``path``: a dump.json, a rank or step folder, or raw kernel files; one answer a rank and step.

    :raises MsprobeError: there is no dump, or it cannot be read
    """
    return [search(dump, name) for name, dump in dumps_in(path)]


def search(dump: Dump, name: str = "") -> FirstNonFinite:
    """Search one dump in execution order."""
    entries = list(dump.entries.values())
    first = _first(dump, entries, _holds)
    nan = _first(dump, entries, _holds_nan)
    bad = sum(any(map(_holds, entry.items)) for entry in entries)
    outside = _outside(dump, entries, _holds)
    if first is not None and outside is not None and first.entry in ancestors(dump.entries, outside.entry):
        first = None  # it came in inside of that call
        nan = None if outside.holds == "NaN" else nan
    return FirstNonFinite(name or str(dump.path), first, None if nan == first else nan, outside, bad, _searched(dump))


def _searched(dump: Dump) -> int:
    """A dump of a task that records only what is wrong may be empty: all calls were searched while recording."""
    return len(dump.entries) or int(dump.task in CHECKS)


def first_nan(dump: Dump) -> NonFiniteValue | None:
    """Return the first NaN of a dump, made by an entry or come in from outside."""
    entries = list(dump.entries.values())
    return _outside(dump, entries, _holds_nan) or _first(dump, entries, _holds_nan)


def write_answer(answers: Sequence[FirstNonFinite], folder: Path) -> Path:
    """Write ``anomaly_analyze_overflow_check_{YYYYmmddHHMMSS}.json``: the answers by dump; ``first_nan`` in each case.

    :raises UsageError: the folder cannot be written
    """
    return write_anomalies("overflow_check", {each.dump: _content(each) for each in answers}, folder)


def _content(answer: FirstNonFinite) -> dict[str, Any]:
    first = answer.first
    only_nan = first if first is not None and first.holds == "NaN" else None
    return asdict(replace(answer, first_nan=answer.first_nan or only_nan))


def write_anomalies(command: str, content: Mapping[str, Any], folder: Path) -> Path:
    """Write what a command found into a file that tools for ``anomaly_analyze_*.json`` find, never over another.

    :raises UsageError: the folder cannot be written
    """
    with claimed_timestamp(folder, _BEGINNING) as timestamp:
        path = folder / f"{_BEGINNING}{command}_{timestamp}.json"
        with writing(path) as file:
            file.write(json.dumps(content, indent=1).encode())
    return path


def answer_lines(answer: FirstNonFinite) -> Iterator[str]:
    """Describe an answer for the terminal."""
    yield f"{answer.dump}:"
    if not answer.searched:
        yield tr("  nothing was recorded, so nothing is known of its values")
        return
    if not answer.entries:
        yield tr("  every value is finite")
        return
    if answer.first is not None:
        yield tr(
            "  the first call that turns finite inputs into NaN or infinity: {item} holds {holds}",
            item=answer.first.item or answer.first.entry,
            holds=answer.first.holds,
        )
        yield from _place_lines(answer.first)
    if answer.first_nan is not None:
        yield tr("  the first call that makes NaN of inputs without NaN (infinities may be intended, as in a mask):")
        yield from _place_lines(answer.first_nan)
    if answer.outside is not None:
        yield tr(
            "  {holds} came from {source}, and not from a recorded call; it first appears in:",
            holds=answer.outside.holds,
            source=source_of(answer.outside),
        )
        yield from _place_lines(answer.outside)
    yield tr("  {entries} of its entries hold something that is not finite", entries=answer.entries)


def made_by_its_entry(value: NonFiniteValue) -> bool:
    """Whether the entry of a value made it; else it took it in."""
    parsed = parse_entry(value.entry)
    is_gradient = parsed is not None and parsed.direction == PARAMETERS_GRAD
    return is_gradient or value.item.startswith("output")


def takes_infinity(entry: Entry) -> bool:
    """Return whether an infinity, and no NaN, is among the tensors that an entry takes in."""
    held = {_holds(item) for item in entry.items if item.state not in ("output", PARAMETERS_GRAD)}
    return not held.isdisjoint(("inf", "-inf")) and "NaN" not in held


def source_of(value: NonFiniteValue) -> str:
    """Say what brought a value that no entry has made."""
    parsed = parse_entry(value.entry)
    if value.item.startswith("parameters."):
        return tr("a weight")
    if value.weight:
        return tr("the weight {name}", name=value.weight)
    if is_update(parsed):
        return tr("what an optimizer keeps from step to step, or a gradient")
    if parsed is not None and parsed.direction == BACKWARD:
        return tr("a gradient from code that was not recorded")
    return tr("input data, a weight (level mix names it), an argument of the call, or code that was not recorded")


def _place_lines(bad: NonFiniteValue) -> Iterator[str]:
    yield f"    {bad.entry}.{bad.item}".rstrip(".")
    titles = (tr("in"), bad.cell), (tr("scope"), bad.scope), (tr("file"), bad.file), (tr("called at"), bad.called)
    yield from (tr("    {title} {value}", title=title, value=value) for title, value in titles if value)


def dumps_in(path: Path) -> Iterator[tuple[str, Dump]]:
    """Yield the dumps below ``path``, each with its name; raw files of kernels are one a rank and step.

    A dump.json says more than raw files: it comes first where there are both."""
    try:
        found = find_places(path)
    except DumpFormatError as error:
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


def _first(dump: Dump, entries: Sequence[Entry], holds: _Test) -> NonFiniteValue | None:
    clean = True
    tainted = _tainted(dump, entries, holds)
    for entry in entries:
        inputs, outputs = _given(entry, holds), _made(entry, holds)
        overwritten = clean and all(_is_overwritten(dump, entry, item, outputs) for item in inputs)
        if outputs and (not inputs or overwritten) and not _is_kept(entry) and not _inherits(entry, tainted, clean):
            return _bad(dump, entry, outputs[0])
        clean = clean and not inputs and not outputs
    return None


def _made(entry: Entry, holds: _Test) -> list[Item]:
    """What an entry has made that is not finite; the gradients of parameters are made by the backward."""
    return [item for item in entry.items if item.state in ("output", PARAMETERS_GRAD) and holds(item)]


def _given(entry: Entry, holds: _Test) -> list[Item]:
    return [
        item
        for item in entry.items
        if item.state not in ("output", PARAMETERS_GRAD) and (holds(item) or _holds_plain(item, holds))
    ]


def _tainted(dump: Dump, entries: Sequence[Entry], holds: _Test) -> set[str]:
    """The forward entries that hold something which is not finite, or have a call inside that does."""
    found: set[str] = set()
    for entry in entries:
        if (
            entry.parsed is not None
            and entry.parsed.direction == FORWARD
            and (_given(entry, holds) or _made(entry, holds))
        ):
            found |= {entry.name, *ancestors(dump.entries, entry.name)}
    return found


def _inherits(entry: Entry, tainted: set[str], clean: bool) -> bool:
    """Whether a backward is computed from something that was not finite already: what its forward kept.

    The gradient of a parameter sums what all calls hand on that use it; nothing tells which these are."""
    if entry.parsed is None or entry.parsed.direction == FORWARD:
        return False
    if entry.parsed.direction == PARAMETERS_GRAD and not clean:
        return True
    return str(entry.parsed.in_direction(FORWARD)) in tainted


def _is_overwritten(dump: Dump, entry: Entry, item: Item, outputs: Sequence[Item]) -> bool:
    """Whether an input is an output of a compiled kernel, which wrote it in place: its files show what it wrote.

    Inputs of calls are recorded before the call: equal outputs were handed on, as by a cast."""
    return bool(entry.scope) and any(_is_same(dump, item, each) for each in outputs)


def _is_same(dump: Dump, item: Item, other: Item) -> bool:
    if _figures(item) != _figures(other):
        return False
    try:
        return np.array_equal(dump.tensors.load(item), dump.tensors.load(other), equal_nan=True)
    except (MsprobeError, OSError):
        return _holds(item) != "NaN"  # of any two tensors with a NaN the statistics are the same


def _statistics(item: Item) -> tuple[object, ...]:
    return item.dtype, item.shape, item.maximum, item.minimum, item.mean, item.norm


def _outside(dump: Dump, entries: Sequence[Entry], holds: _Test) -> NonFiniteValue | None:
    """What the first entry that holds something takes in, when that is not finite."""
    for entry in entries:
        outputs = _made(entry, holds)
        taken = [item for item in _given(entry, holds) if not _is_overwritten(dump, entry, item, outputs)]
        if taken or (outputs and _is_kept(entry)):
            return _bad(dump, entry, (taken or outputs)[0])
        if outputs:
            return None
    return None


def _is_kept(entry: Entry) -> bool:
    """A parameter of a compiled graph: no kernel."""
    return entry.parsed is not None and entry.parsed.prefix == PARAMETER


def _bad(dump: Dump, entry: Entry, item: Item) -> NonFiniteValue:
    frames = outside_frameworks(entry.stack)
    called = " ".join(frames[0].split()) if frames else ""
    return NonFiniteValue(
        entry.name,
        item.suffix,
        _holds(item) or _holds_plain(item, _holds),
        entry.parent or "",
        entry.scope,
        dump.tensors.where(item),
        called,
        _weight(dump, entry, item),
    )


def _weight(dump: Dump, entry: Entry, item: Item) -> str:
    """The one recorded parameter of the Cells around a call that an input of it is; "" where that is not certain."""
    if item.state != "input":
        return ""

    def alike(other: Item) -> bool:
        return _figures(other) == _figures(item)

    around = (dump.entries[name] for name in ancestors(dump.entries, entry.name) if name in dump.entries)
    found = [each.name for cell in around for each in cell.items if each.state == PARAMETERS and alike(each)]
    inputs = [each for each in entry.items if each.state == "input" and alike(each)]
    return found[0] if len(found) == 1 and len(inputs) == 1 else ""


def _figures(item: Item) -> str:
    """As a text, in which NaN equals NaN; the names of dtypes are those of one framework."""
    return str(_statistics(item))


def _holds(item: Item) -> str:
    """What an item holds that is not finite; "" for nothing.

    A mean or norm that overflowed beside finite extremes is no fault of the values; one that is NaN is, but for the
    mean of infinities of both signs.
    """
    if item.kind != "tensor":
        return ""
    statistics = [item.maximum, item.minimum, item.norm]
    if (item.maximum, item.minimum) != (math.inf, -math.inf):
        statistics.append(item.mean)
    if any(isinstance(value, float) and math.isnan(value) for value in statistics):
        return "NaN"
    return next((f"{value}" for value in statistics[:2] if isinstance(value, float) and math.isinf(value)), "")


def _holds_nan(item: Item) -> str:
    return "NaN" if _holds(item) == "NaN" else ""


def _holds_plain(item: Item, holds: _Test) -> str:
    """What a number that is passed as such holds that is not finite: ``masked_fill(x, mask, -inf)``."""
    is_number = item.kind == "value" and isinstance(item.maximum, float)
    return holds(item._replace(kind="tensor", mean=None, norm=None)) if is_number else ""
