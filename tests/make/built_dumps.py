"""Dumps built by hand, for tests of what stands beside what."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msprobe_ms.comparison.model import Pair
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import parse_entry
from msprobe_ms.dump.reading.items import TensorSource

Shape = tuple[int, ...]
Items = dict[str, Shape | None]


def entry(name: str, items: Items | None = None, parent: str | None = None) -> Entry:
    """An entry of tensors by suffix (``{"input.0": (2, 3)}``); None is null, ``input.mask=`` a keyword."""
    built = []
    for suffix, shape in (items if items is not None else {"input.0": (2, 3), "output.0": (2, 3)}).items():
        state, _, path = suffix.rstrip("=").partition(".")
        if "parameters_grad" in name:
            state, path = "parameters_grad", suffix
        kind = "null" if shape is None else "tensor"
        dtype = None if shape is None else "Float32"
        keyword = suffix.endswith("=")
        built.append(Item(name, state, tuple(path.split(".")), keyword, kind, "mindspore.Tensor", dtype, shape))
    return Entry(name, parse_entry(name), built, parent)


def dump(framework: str, *entries: Entry | str) -> Dump:
    made = [entry(one) if isinstance(one, str) else one for one in entries]
    where = Path("dump.json")
    by_name = {one.name: one for one in made}
    assert len(by_name) == len(made), "an entry name twice"
    return Dump(where, "statistics", "mix", framework, "statistics", "latest", by_name, TensorSource(where.parent))


def module_calls(prefix: str, path: str, class_name: str, calls: int = 1) -> list[Entry]:
    """Forward, backward and parameter gradients of every call, the backward in reverse order."""
    whole = f"{prefix}.{path}.{class_name}"
    forward = [entry(f"{whole}.forward.{call}") for call in range(calls)]
    backward = [
        one
        for call in reversed(range(calls))
        for one in (entry(f"{whole}.backward.{call}"), entry(f"{whole}.parameters_grad.{call}", {"weight": (3,)}))
    ]
    return forward + backward


def paired(pairs: Iterable[Pair]) -> dict[str, str]:
    """Target entry → golden entry, matched ones only."""
    return {pair.target.name: pair.golden.name for pair in pairs if pair.target and pair.golden}


def rows(pairs: Iterable[Pair]) -> list[tuple[str | None, str | None]]:
    """Item names of all rows."""
    return [
        (row.target.name if row.target else None, row.golden.name if row.golden else None)
        for pair in pairs
        for row in pair.rows
    ]
