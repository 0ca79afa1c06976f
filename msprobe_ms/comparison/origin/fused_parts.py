"""Which of several modules that the other side has fused an origin lies in: real data tells, statistics do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Origin, Pair, Row
from msprobe_ms.comparison.pairing.fused_tensors import JoinedTensors
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import is_fused, parse_entry
from msprobe_ms.support.errors import MsprobeError


def name_fused_parts(origins: Sequence[Origin], pairs: Sequence[Pair], target: Dump, golden: Dump) -> list[Origin]:
    """Return the origins, those in fused modules with a word on which of them differ where not all do."""
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
        differing = [name for name, deviation in parts if not deviation <= ((row and row.held_to) or 0.0)]
        if 0 < len(differing) < len(parts):
            names = f"{' and '.join(differing)} {'differ' if len(differing) > 1 else 'differs'}"
            origin = replace(origin, reason=f"{origin.reason}; of {len(parts)} fused only {names}")
        told.append(origin)
    return told


def _parts(row: Row, target: Dump, golden: Dump) -> Iterator[tuple[str, float]]:
    """The last name of each part and the relative error in it; none where the data does not tell."""
    assert row.target is not None and row.golden is not None
    both = (target, row.target), (golden, row.golden)
    for dump, item in both:
        sections = dump.tensors.sections(item) if isinstance(dump.tensors, JoinedTensors) else None
        if sections is None:
            continue
        try:
            ours, other = (dump.tensors.load(item) for dump, item in both)
        except (MsprobeError, OSError):
            return
        if ours.shape != other.shape or ours.dtype.kind == "c":
            return
        for part, places in sections.parts:
            mine, theirs = (np.take(array, places, sections.axis).astype(np.float64) for array in (ours, other))
            parsed = parse_entry(part.entry)
            name = (parsed.name if parsed else part.entry).rpartition(".")[2]
            yield name, relative_error(mine, theirs)


def relative_error(target: npt.NDArray[np.float64], golden: npt.NDArray[np.float64]) -> float:
    """NaN or infinity where one side alone has such in some place; what is the same on both sides is no error."""
    same = (target == golden) | (np.isnan(target) & np.isnan(golden))
    with np.errstate(invalid="ignore", over="ignore"):
        finite = golden[np.isfinite(golden)]
        largest = float(np.abs(finite).max(initial=0.0)) or 1.0  # whose squares may be beyond all numbers
        error = float(np.linalg.norm(np.where(same, 0.0, target / largest - golden / largest)))
        norm = float(np.linalg.norm(finite / largest))
        return error / norm if norm else float(error != 0)
