"""Items, entries and dumps made from arrays, with the statistics and files a real dump of them would have."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from repository import DATA

import msprobe_ms
from msprobe_ms.comparison.api.compared import ComparedRanks
from msprobe_ms.comparison.model import Comparison, Outcome, Pair, Row
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_one, verdict_of
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import parse_entry
from msprobe_ms.dump.reading.items import TensorSource
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump


def tensor(place: str, values: Any, entry: str = "Functional.op.0.forward", **changed: Any) -> Item:
    """A tensor item at ``input.0``-like ``place`` with numpy's statistics; ``changed`` overrides fields."""
    array = np.asarray(values)
    state, *path = place.split(".")
    figures: dict[str, Any] = dict.fromkeys(("maximum", "minimum", "mean", "norm"))
    if array.size and array.dtype == bool:
        figures.update(maximum=bool(array.max()), minimum=bool(array.min()))
    elif array.size:
        wide = array.astype(np.float64)
        with np.errstate(invalid="ignore"):
            norm = float(np.sqrt((wide**2).sum()))
            figures = {
                "maximum": float(wide.max()),
                "minimum": float(wide.min()),
                "mean": float(wide.mean()),
                "norm": norm,
            }
    fields: dict[str, Any] = {
        "kind": "tensor",
        "type": "mindspore.Tensor",
        "dtype": array.dtype.name.capitalize(),
        "shape": array.shape,
        "md5": f"{zlib.crc32(array.tobytes()):08x}",
        "data_name": f"{entry}.{place}.npy",
        **figures,
    }
    return Item(entry, state, tuple(path), **{**fields, **changed})


def value(place: str, content: Any, entry: str = "Functional.op.0.forward", **changed: Any) -> Item:
    """A plain value."""
    state, *path = place.split(".")
    kind = type(content).__name__
    fields: dict[str, Any] = {
        "kind": "value",
        "type": kind,
        "dtype": f"<class '{kind}'>",
        "shape": "[]",
        **dict.fromkeys(("maximum", "minimum", "mean", "norm"), content),
    }
    return Item(entry, state, tuple(path), **{**fields, **changed})


def null(place: str, entry: str = "Functional.op.0.forward") -> Item:
    state, *path = place.split(".")
    return Item(entry, state, tuple(path))


def dump(items: Sequence[Item], framework: str = "mindspore", folder: Path = Path("nowhere")) -> Dump:
    """A dump of the items' entries, in their order."""
    entries: dict[str, Entry] = {}
    for item in items:
        entries.setdefault(item.entry, Entry(item.entry, parse_entry(item.entry), [])).items.append(item)
    source = TensorSource(folder)
    return Dump(folder / "dump.json", "statistics", "L1", framework, "statistics", "latest", entries, source)


def side_by_side(*both: tuple[Item | None, Item | None]) -> Pair:
    """A pair whose rows are the given items."""
    targets = [target for target, _ in both if target is not None]
    goldens = [golden for _, golden in both if golden is not None]
    made = [
        Entry(items[0].entry, parse_entry(items[0].entry), items, stack=("File /a/b.py, line 1, in f, \n f(x)",))
        if items
        else None
        for items in (targets, goldens)
    ]
    return Pair(made[0], made[1], [Row(target, golden) for target, golden in both], "name")


def scale_against_good(folder: Path) -> tuple[Comparison, Dump, Dump]:
    """The dumps that 1.1.0 compared itself, unpacked into ``folder`` beside its ``report.xlsx`` and ``advisor.txt``."""
    with zipfile.ZipFile(DATA / "v110" / "scale_against_good.zip") as archive:
        archive.extractall(folder)
    target, golden = read_dump(folder / "scale" / "dump.json"), read_dump(folder / "good" / "dump.json")
    return judged(Comparison("statistics", pair(target, golden, Mappings()))), target, golden


def judged(comparison: Comparison) -> Comparison:
    """The comparison with its verdict."""
    comparison.verdict = verdict_of(comparison)
    return comparison


def compared(target: Path, golden: Path, output: Path, options: Options) -> Outcome:
    """Compare two dumps of one rank and step, given by any folder above them, and write their reports."""
    (ours,), (theirs,) = find_places(target).values(), find_places(golden).values()
    return compare_one(ours, theirs, output, options, "now")


def compared_steps(target: Path, golden: Path) -> ComparedRanks:
    """`msprobe_ms.compare` of two roots, in this process: others take longer to start than a few steps to compare."""
    with ThreadPoolExecutor(1) as thread:
        results = msprobe_ms.compare(target, golden, executor=thread)
    assert isinstance(results, ComparedRanks)
    return results
