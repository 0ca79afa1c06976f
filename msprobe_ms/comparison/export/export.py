"""Export dumps, or comparisons of dumps, to the files of other viewers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.topology import Topology, topology_of_comparison, topology_of_dump
from msprobe_ms.comparison.kernels.compare import compare_kernel_dumps
from msprobe_ms.comparison.many.plan import plan
from msprobe_ms.comparison.reporting.profiles import judge
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.kernels.entries import KernelDump, read_kernels
from msprobe_ms.dump.kernels.kernel_files import KernelFolder, find_kernel_folders, read_folders
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.locate import Place, find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import CompareError, DumpFormatError
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr

Writer = Callable[[Iterable[Topology], Naming], Iterator[Path]]

_Kernels = Mapping[Place, Callable[[], KernelDump]]

#: Formats, by what the user calls them, and the modules that write them.
FORMATS = {"model-explorer": "model_explorer", "vis.db": "vis_db", "onnx": "onnx_file", "dot": "dot"}


def export(
    target: Path,
    golden: Path | None,
    to: str,
    naming: Naming,
    options: Options,
    *,
    ranks: Collection[int] = (),
    steps: Collection[int] = (),
) -> Iterator[Path]:
    """Write what the dumps below ``target`` show, compared with those below ``golden`` where that is given.

    ``to`` is one of ``FORMATS``; ``ranks`` and ``steps`` choose, ``()`` is all. Yields the files that were written.

    :raises MsprobeError: a dump cannot be read or compared, or a file cannot be written
    """
    write: Writer = import_module(f"{__package__}.{FORMATS[to]}").write
    if golden is None:
        yield from write(_of_dumps(target, ranks, steps), naming)
    else:
        yield from write(_of_comparisons(target, golden, options, ranks, steps), naming)


def _of_dumps(path: Path, ranks: Collection[int], steps: Collection[int]) -> Iterator[Topology]:
    found: Mapping[Place, Callable[[], Dump]]
    try:
        places = find_places(path)
    except DumpFormatError:
        if not (found := _kernels(path)):
            raise
    else:
        found = {place: partial(read_dump, file, sketches=False) for place, file in places.items()}
    chosen = _chosen(path, found, ranks, steps)
    for place in chosen:
        yield topology_of_dump(found[place](), place, _suffix(place) if len(chosen) > 1 else "")


def _of_comparisons(
    target: Path, golden: Path, options: Options, ranks: Collection[int], steps: Collection[int]
) -> Iterator[Topology]:
    try:
        pairs = plan(target, golden, ranks=ranks, steps=steps).pairs
    except DumpFormatError:
        ours, theirs = _kernels(target), _kernels(golden)
        if not (ours and theirs):
            raise
        yield from _of_kernels(ours, theirs, _chosen(target, ours, ranks, steps), options)
        return
    places = {path: place for place, path in find_places(target).items()}
    for pair in pairs:
        mine, other = read_dump(pair.target), read_dump(pair.golden)
        comparison = compare_dumps(mine, other, options, one_of_many=len(pairs) > 1)
        yield topology_of_comparison(mine, other, comparison, places.get(pair.target, pair.place), pair.suffix)


def _of_kernels(ours: _Kernels, theirs: _Kernels, chosen: Collection[Place], options: Options) -> Iterator[Topology]:
    """Comparisons of raw files of kernels, those of the ranks and steps that both sides have."""
    both = [place for place in chosen if place in theirs]
    if not both:
        raise CompareError(
            tr("no rank and step is in both: {ours} and {theirs}", ours=listed(ours), theirs=listed(theirs))
        )
    for place in both:
        mine, other = ours[place](), theirs[place]()
        comparison = compare_kernel_dumps(mine, other)
        judge(comparison, options.report)
        yield topology_of_comparison(mine, other, comparison, place, _suffix(place) if len(both) > 1 else "")


def _kernels(path: Path) -> _Kernels:
    """The ranks and steps of which there are raw files of kernels, and how to read each."""
    folders = find_kernel_folders(path) if path.is_dir() else []
    by_place: dict[Place, list[KernelFolder]] = {}
    for folder in folders:
        by_place.setdefault(Place(folder.step, f"rank{folder.rank}"), []).append(folder)
    return {place: partial(_read_kernels, path, some) for place, some in by_place.items()}


def _read_kernels(path: Path, folders: Collection[KernelFolder]) -> KernelDump:
    return read_kernels(path, read_folders(folders))


def _chosen(path: Path, places: Collection[Place], ranks: Collection[int], steps: Collection[int]) -> Sequence[Place]:
    """The places that were asked for; where nothing tells the step of a dump, the choice does not concern it."""
    found = [
        place
        for place in places
        if (not ranks or place.rank_number in ranks) and (not steps or place.step is None or place.step in steps)
    ]
    if not found:
        raise CompareError(
            tr("{path}: no rank and step that was asked for: it has {places}", path=path, places=listed(places))
        )
    return found


def _suffix(place: Place) -> str:
    return f"_{'_'.join(str(place).split())}"
