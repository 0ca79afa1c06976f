"""``compare -da``: in which ranks and calls error begins first, as msprobe 26.x writes it, in place of tables."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msprobe_ms.comparison.many.plan import DumpPair, Plan
from msprobe_ms.comparison.many.run import Found, compare_all
from msprobe_ms.comparison.many.summary import Gathering, Total
from msprobe_ms.comparison.many.terminal import total_lines
from msprobe_ms.comparison.model import Origin
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.run import Options
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.translation import tr


def first_divergence(plan: Plan, output: Path, options: Options) -> tuple[list[str], Total]:
    """Compare all pairs; write the first ranks of the first step that diverges as ``diff_analyze_{nanoseconds}.json``.

    Returns what came of it in words, a line each, and the total. Raises MsprobeError: a dump cannot be read, or the
    file not be written.
    """
    with Gathering(plan, None, "") as gathering:
        founds = []
        for found in compare_all(plan, None, options, ""):
            gathering.add(found)
            if found.verdict == Verdict.DIVERGENT:
                founds.append(found)
        total = gathering.total()
    path = output / f"diff_analyze_{time.time_ns()}.json"
    first = _of_the_first(founds, total)
    pairs = {pair.place: pair for pair in plan.pairs}
    content = {found.place.rank or "rank": _nodes(found, pairs[found.place]) for found in first}
    with writing(path) as file:
        file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode("ascii"))
    said = list(total_lines(total, plan)) if len(plan.pairs) > 1 else [str(total.verdict).upper()]
    said += [
        tr("{rank}: error begins at {node}", rank=rank, node=node["op_name"])
        for rank, nodes in content.items()
        for node in nodes[:1]
    ]
    return [*said, tr("report: {path}", path=path)], total


def _of_the_first(founds: Sequence[Found], total: Total) -> list[Found]:
    """Those of the first step that diverges, in which error begins first; all of it where that cannot be told."""
    if total.first_step is not None:
        founds = [found for found in founds if found.place.step == total.first_step]
    ranks = total.first_rank.ranks if total.first_rank is not None else []
    return [found for found in founds if found.place.rank in ranks] or list(founds)


def _nodes(found: Found, pair: DumpPair) -> list[dict[str, Any]]:
    if not found.origins:
        return []
    stacks = {name: entry.stack for name, entry in read_dump(pair.target).entries.items()}
    return [_node(origin, stacks) for origin in found.origins]


def _node(origin: Origin, stacks: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    entry = next(_enclosing(origin.target, stacks), origin.target)
    data = {"NPU Name": origin.target, "Bench Name": origin.golden, **origin.metrics, "Err_message": origin.reason}
    known = {
        key: value if isinstance(value, (int, str)) or value is None else _finite(value) for key, value in data.items()
    }
    return {"op_name": entry, "data_info": [known], "stack_info": list(stacks.get(entry, ()))}


def _enclosing(item: str, entries: Mapping[str, object]) -> Iterator[str]:
    """The entry that an item's name begins with."""
    parts = item.split(".")
    return (name for length in range(len(parts), 0, -1) if (name := ".".join(parts[:length])) in entries)


def _finite(value: float) -> float | str:
    return value if value - value == 0 else str(value)
