"""Running statistics that one side did not record: parameters in MindSpore, buffers in PyTorch, not dumped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.pairing.items import PARAMETER_SYNONYMS
from msprobe_ms.dump.model import Item

#: Running statistics of normalisation, as either framework names them.
RUNNING_STATISTICS = frozenset(
    name for both in PARAMETER_SYNONYMS.items() for name in both if both[1].startswith("running_")
)


@dataclass(frozen=True)
class LoneStatistics:
    """``holder`` recorded them, ``other`` did not; ``modules``: whose they are, dotted; ``names``: their own."""

    holder: str
    other: str
    modules: list[str]
    names: list[str]


def lone_statistics(pairs: Sequence[Pair]) -> LoneStatistics | None:
    """The running statistics of paired modules that stand beside nothing, where the other side recorded none at all."""
    held: tuple[dict[str, None], dict[str, None]] = {}, {}
    names: dict[str, None] = {}
    for pair in pairs:
        for row in pair.rows if pair.matched else ():
            if row.state != "parameters":
                continue
            for side, (item, entry) in enumerate(((row.target, pair.target), (row.golden, pair.golden))):
                if _is_one(item) and entry is not None and entry.parsed is not None:
                    held[side][entry.parsed.name] = None
                    names[item.path[-1]] = None
    if bool(held[0]) == bool(held[1]):
        return None
    holder, other = ("target", "golden") if held[0] else ("golden", "target")
    return LoneStatistics(holder, other, list(held[0] or held[1]), list(names))


def is_running_statistic(row: Row) -> bool:
    """Whether the one item of an unmatched row is one."""
    return row.state == "parameters" and _is_one(row.target or row.golden)


def _is_one(item: Item | None) -> TypeGuard[Item]:
    return item is not None and item.path[-1:] != () and item.path[-1] in RUNNING_STATISTICS
