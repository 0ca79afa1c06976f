"""Which of several modules that the other side has fused an origin lies in: real data tells, figures do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from msprobe_ms.compare.joined_tensors import JoinedTensors
from msprobe_ms.compare.model import Origin, Pair, Row
from msprobe_ms.errors import MsprobeError
from msprobe_ms.mapping.data import is_fused
from msprobe_ms.names import parse_entry
from msprobe_ms.store.model import Dump


def tell_parts(origins: Sequence[Origin], pairs: Sequence[Pair], target: Dump, golden: Dump) -> list[Origin]:
    """The origins, those in fused modules with a word on which of them differ where not all do."""
    if not any(is_fused(origin.target) or is_fused(origin.golden) for origin in origins):
        return list(origins)
    rows = {
        row.target.name: row
        for pair in pairs
        if pair.fused
        for row in pair.rows
        if row.measured and row.target is not None and row.golden is not None
    }
    told = []
    for origin in origins:
        row = rows.get(origin.target)
        parts = list(_parts(row, target, golden)) if row is not None else []
        differing = [name for name, deviation in parts if deviation > ((row and row.tolerance) or 0.0)]
        if 0 < len(differing) < len(parts):
            names = f"{' and '.join(differing)} {'differ' if len(differing) > 1 else 'differs'}"
            origin = replace(origin, reason=f"{origin.reason}; of {len(parts)} fused only {names}")
        told.append(origin)
    return told


def _parts(row: Row, target: Dump, golden: Dump) -> Iterator[tuple[str, float]]:
    """The last name of each part and the relative error in it; none where the data does not tell."""
    mine, theirs = row.target, row.golden
    assert mine is not None and theirs is not None
    for dump, item in ((target, mine), (golden, theirs)):
        sections = dump.tensors.sections(item) if isinstance(dump.tensors, JoinedTensors) else None
        if sections is None:
            continue
        try:
            ours, other = (dump.tensors.load(item) for dump, item in ((target, mine), (golden, theirs)))
        except (MsprobeError, OSError):
            return
        if ours.shape != other.shape or ours.dtype.kind == "c":
            return
        for part, places in sections.parts:
            exact = np.take(other, places, sections.axis).astype(np.float64)
            error = np.take(ours, places, sections.axis).astype(np.float64) - exact
            norm = float(np.linalg.norm(exact))
            parsed = parse_entry(part.entry)
            name = (parsed.name if parsed else part.entry).rpartition(".")[2]
            yield name, float(np.linalg.norm(error)) / norm if norm else float(np.linalg.norm(error) > 0)
