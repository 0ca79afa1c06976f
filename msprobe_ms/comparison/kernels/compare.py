"""Compare two dumps of kernels, rank by rank and step by step: a table each, and where the error begins.

What pairs with what, and the tables: docs/format.md, "Tables of kernels".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from msprobe_ms.comparison.kernels.table import Table, write_kernel_table
from msprobe_ms.comparison.many.plan import warn_absent
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Comparison, Outcome, Pair, Row
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins, split_random
from msprobe_ms.comparison.pairing.shares import shares_of
from msprobe_ms.comparison.reporting.files import claimed_timestamp, write_summary
from msprobe_ms.comparison.run import verdict_of
from msprobe_ms.comparison.terms import Mode, PairedBy
from msprobe_ms.dump.kernels.entries import KernelDump, read_kernels
from msprobe_ms.dump.kernels.kernel_files import KernelFolder, need_kernel_folders, read_folders
from msprobe_ms.dump.kernels.launches import Launch
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import CompareError, DumpFormatError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_join

Place = tuple[int, int]


def compare_kernels(
    target: Path,
    golden: Path,
    output: Path,
    *,
    ranks: Collection[int] = (),
    steps: Collection[int] = (),
    profile: str = "latest",
    csv: bool = False,
) -> Iterator[Outcome]:
    """Compare the raw kernel files of two dump roots; ``()`` is every rank, every step. Reports go to ``output``.

    Ranks and steps that only one side has are left out. A damaged file costs its own row.

    :raises MsprobeError: nothing is there in both, or one has tensors and the other statistics
    """
    ours, theirs = _by_place(target), _by_place(golden)
    places = [place for place in _chosen(ours, ranks, steps) if place in theirs]
    if not places:
        raise CompareError(
            tr(
                "no rank and step asked for is in both: {target} has {shown}, {golden} has {other_shown}",
                target=target,
                shown=_shown(ours),
                golden=golden,
                other_shown=_shown(theirs),
            )
        )
    found = [*ours, *theirs]
    warn_absent("rank", ranks, [rank for rank, _ in found])
    warn_absent("step", steps, [step for _, step in found])
    with claimed_timestamp(output) as timestamp:
        for rank, step in places:
            name = tr("rank {rank} step {step}", rank=rank, step=step)
            mine, other = _read(target, ours[rank, step]), _read(golden, theirs[rank, step])
            if mine.mode != other.mode:
                raise CompareError(
                    tr(
                        "{name}: {target} holds {kind} and {golden} holds {other_kind}; dump both in one way",
                        name=name,
                        target=target,
                        kind=_kind(mine),
                        golden=golden,
                        other_kind=_kind(other),
                    )
                )
            comparison = compare_kernel_dumps(mine, other)
            suffix = f"_{rank}_{step}"
            table = Table(comparison, mine, other, profile)
            files = [
                write_kernel_table(table, output / f"compare_result{suffix}_{timestamp}.{'csv' if csv else 'xlsx'}")
            ]
            files.append(write_summary(comparison, output, timestamp, suffix))
            yield Outcome(name, mine, other, comparison, files)


def compare_kernel_dumps(target: KernelDump, golden: KernelDump) -> Comparison:
    """Pair, measure and find where error begins, in launch order."""
    pairs = pair_kernels(target, golden)
    measure(pairs, target, golden, target.mode)
    origins, random = split_random(find_origins(Evidence(pairs, list(golden.entries.values()))))
    comparison = Comparison(Mode(target.mode), pairs, origins, random, shares=shares_of(pairs))
    comparison.verdict = verdict_of(comparison)
    return comparison


def pair_kernels(target: KernelDump, golden: KernelDump) -> list[Pair]:
    """Pair launches of one kernel, by its name in the graph; where it ran several times the n-th with the n-th."""
    theirs = dict(_numbered(golden))
    pairs = []
    for key, entry in _numbered(target):
        counterpart = theirs.pop(key, None)
        how = PairedBy.NAME if counterpart else PairedBy.NOTHING
        pairs.append(Pair(entry, counterpart, _rows(entry, counterpart), how))
    return pairs + [Pair(None, entry, [Row(None, item) for item in entry.items]) for entry in theirs.values()]


def _numbered(dump: KernelDump) -> Iterator[tuple[tuple[object, ...], Entry]]:
    counts: Counter[tuple[object, ...]] = Counter()
    for name, entry in dump.entries.items():
        key = _key(dump.launches[name])
        yield (*key, counts[key]), entry
        counts[key] += 1


def _key(launch: Launch) -> tuple[object, ...]:
    # docs/format.md, "Tables of kernels": name and task; the stream is the device's choice. A table may have the path
    # with slashes.
    return launch.op_name.replace("/", "_"), launch.files[0].task


def _rows(entry: Entry, counterpart: Entry | None) -> list[Row]:
    theirs = {item.suffix: item for item in counterpart.items} if counterpart else {}
    rows = [Row(item, theirs.pop(item.suffix, None)) for item in entry.items]
    return rows + [Row(None, item) for item in theirs.values()]


def _by_place(root: Path) -> dict[Place, list[KernelFolder]]:
    places: dict[Place, list[KernelFolder]] = {}
    for folder in need_kernel_folders(root):
        places.setdefault((folder.rank, folder.step), []).append(folder)
    return places


def _chosen(places: Collection[Place], ranks: Collection[int], steps: Collection[int]) -> list[Place]:
    return [(rank, step) for rank, step in places if (not ranks or rank in ranks) and (not steps or step in steps)]


def _read(root: Path, folders: list[KernelFolder]) -> KernelDump:
    files = read_folders(folders)
    # Where there are tensors, a table beside them says less.
    tensors = [file for file in files if file.statistics is None]
    dump = read_kernels(root, tensors or files)
    _take_places(dump, folders[0])
    return dump


def _take_places(dump: KernelDump, folder: KernelFolder) -> None:
    """What an index of the same files knows better: Cells by their names in the model."""
    index = folder.root / f"step{folder.step}" / f"rank{folder.rank}"
    try:
        known = read_dump(index, sketches=False).entries if (index / "dump.json").is_file() else {}
    except DumpFormatError as error:
        logger.warning(tr("{error}; its Cells are named as the graph has them", error=error))
        return
    for name, entry in dump.entries.items():
        counterpart = known.get(name)
        if counterpart is not None and entry.scope and counterpart.scope == entry.scope:
            entry.parent, entry.stack = counterpart.parent, counterpart.stack


def _shown(places: Collection[Place]) -> str:
    shown = [tr("rank {rank} step {step}", rank=rank, step=step) for rank, step in places]
    return tr_join(", ", shown[:8]) + (" …" if len(shown) > 8 else "")


def _kind(dump: KernelDump) -> str:
    return tr("tensors") if dump.mode == "tensor" else tr("statistics")
