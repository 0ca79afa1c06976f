"""Export dumps, or comparisons of dumps, to the files of other viewers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import import_module
from pathlib import Path

from msprobe_ms.comparison.export.files import Naming
from msprobe_ms.comparison.export.topology import Topology, topology_of_comparison, topology_of_dump
from msprobe_ms.comparison.kernels.first_nonfinite import dumps_in
from msprobe_ms.comparison.many.plan import plan
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.reading.locate import Place, find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import CompareError, DumpFormatError

Writer = Callable[[Iterable[Topology], Naming], Iterator[Path]]

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
    try:
        places = find_places(path)
    except DumpFormatError:
        for number, (_, dump) in enumerate(dumps_in(path)):  # raw files of kernels
            yield topology_of_dump(dump, Place(number, ""), f"_part{number}" if number else "")
        return
    chosen = {
        place: found
        for place, found in places.items()
        if (not ranks or place.rank_number in ranks) and (not steps or place.step is None or place.step in steps)
    }
    if not chosen:
        raise CompareError(f"{path}: no rank and step that was asked for; it has {', '.join(map(str, places))}")
    for place, found in chosen.items():
        suffix = f"_{'_'.join(str(place).split())}" if len(chosen) > 1 else ""
        yield topology_of_dump(read_dump(found, sketches=False), place, suffix)


def _of_comparisons(
    target: Path, golden: Path, options: Options, ranks: Collection[int], steps: Collection[int]
) -> Iterator[Topology]:
    pairs = plan(target, golden, ranks=ranks, steps=steps).pairs
    places = {path: place for place, path in find_places(target).items()}
    for pair in pairs:
        ours, theirs = read_dump(pair.target), read_dump(pair.golden)
        comparison = compare_dumps(ours, theirs, options, one_of_many=len(pairs) > 1)
        yield topology_of_comparison(ours, theirs, comparison, places.get(pair.target, pair.place), pair.suffix)
