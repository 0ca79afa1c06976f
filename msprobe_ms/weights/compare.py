"""Two checkpoints, parameter by parameter: which are equal, which differ and how, which are on one side alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from msprobe_ms.arrays.dtypes import coarser, parse_dtype, same_dtype
from msprobe_ms.arrays.metrics import Measured, tensor_difference
from msprobe_ms.arrays.worst_elements import cause_of
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.names import is_fused
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr, tr_join
from msprobe_ms.weights import mindspore_file
from msprobe_ms.weights.fused import joined_weight, order_of, pair_joined
from msprobe_ms.weights.model import Checkpoint, Weight
from msprobe_ms.weights.names import is_buffer, no_parameters, said_unmatched
from msprobe_ms.weights.renamed import renamed, without_ones
from msprobe_ms.weights.swapped import Holders, exchanges, not_finite

#: What a pair can be. ``CAST``: no number is off by more than the rounding from one dtype to the other; ``CLOSE``: on
#: the whole no further apart than one rounding.
EQUAL, CAST, CLOSE, DIFFERS, SHAPE = "equal", tr("equal when cast"), "close", "differs", tr("shape differs")
#: It has no counterpart by name, and the numbers of one parameter that the other side has alone.
RENAMED = tr("equal, renamed")
UNREADABLE = tr("not compared")
#: What a parameter of one side alone can be.
ONLY_TARGET, ONLY_GOLDEN, TIED = tr("only in the target"), tr("only in the golden"), "tied"
#: It is none: a layer makes it anew, and may keep it where the other side does not.
BUFFER = "buffer"
#: The mapping says that it has no counterpart.
SAID = "unmatched"

#: Elements a block.
_BLOCK = 1 << 16

#: Results that make two checkpoints different.
DIVERGENT = frozenset((DIFFERS, SHAPE, ONLY_TARGET, ONLY_GOLDEN))


@dataclass(slots=True)
class WeightRow:
    """A parameter beside its counterpart, or alone. ``deviation`` is ‖t−g‖₂ / ‖g‖₂, inf where it cannot be measured."""

    target: Weight | None
    golden: Weight | None
    how: str = ""
    result: str = ""
    note: str = ""
    deviation: float | None = None
    tolerance: float | None = None
    metrics: dict[str, Measured] = field(default_factory=dict)
    #: What one of the two was made of, where the other side has several parameters as one.
    parts: Sequence[Weight] = ()

    @property
    def name(self) -> str:
        weight = self.target or self.golden
        assert weight is not None
        return weight.name


@dataclass(slots=True)
class WeightComparison:
    """``rows`` in the target's order, then what the golden has alone; ``aside`` what was left out, by side.

    ``exchanged``: parameters of the target, each of which holds what the next one should. ``renamed``: those that the
    golden has under another name → that name.
    """

    target: Checkpoint
    golden: Checkpoint
    rows: list[WeightRow] = field(default_factory=list)
    aside: dict[str, dict[str, int]] = field(default_factory=dict)
    exchanged: list[tuple[str, ...]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def with_result(self, *results: str) -> list[WeightRow]:
        return [row for row in self.rows if row.result in results]

    @property
    def divergent(self) -> bool:
        return any(row.result in DIVERGENT for row in self.rows)

    @property
    def problems(self) -> list[str]:
        """What could not be read: of the files, then of single parameters."""
        of_rows = [row.note for row in self.with_result(UNREADABLE)]
        return [*self.target.problems, *self.golden.problems, *of_rows]


def compare_weights(
    target: Checkpoint, golden: Checkpoint, mappings: Mappings, progress: Callable[[int, int], object] | None = None
) -> WeightComparison:
    """Pair the parameters of two checkpoints and measure each pair, which alone is in memory then.

    ``progress`` is called after each with the number done and of all.
    """
    comparison = WeightComparison(target, golden)
    ours, theirs = (_parameters(comparison, side, each) for side, each in (("target", target), ("golden", golden)))
    comparison.rows += _rows(ours, theirs, mappings)
    holders = Holders()
    for number, row in enumerate(comparison.rows, 1):
        if row.target is not None and row.golden is not None:
            _measure(row, row.target, row.golden, holders)
        if progress:
            progress(number, len(comparison.rows))
    _tell_holders(comparison, holders)
    _find_tied(comparison, "target")
    _find_tied(comparison, "golden")
    for row in comparison.with_result(ONLY_TARGET, ONLY_GOLDEN):
        weight = row.target or row.golden
        if weight is not None and is_buffer(weight.name, weight.dtype):
            row.result, row.note = BUFFER, tr("no parameter: its layer makes it anew")
    _pair_renamed(comparison)
    return comparison


def _parameters(comparison: WeightComparison, side: str, checkpoint: Checkpoint) -> dict[str, Weight]:
    """The parameters of one side; what is none is counted."""
    left_out = comparison.aside.setdefault(side, dict(checkpoint.skipped))
    shapes = {name: weight.shape for name, weight in checkpoint.weights.items()}
    others = no_parameters(shapes, of_mindspore=checkpoint.format.startswith(mindspore_file.FORMAT))
    for what in others.values():
        left_out[what] = left_out.get(what, 0) + 1
    return {name: weight for name, weight in checkpoint.weights.items() if name not in others}


def _rows(ours: Mapping[str, Weight], theirs: Mapping[str, Weight], mappings: Mappings) -> Iterator[WeightRow]:
    """Every parameter of the target with its counterpart, or alone, then those of the golden that are left."""
    pairs, here, there = pair_joined([*ours], [*theirs], mappings)
    alone = said_unmatched([*ours], mappings)
    joined = {part: name for name, parts in here.items() for part in parts}
    for name in dict.fromkeys(joined.get(name, name) for name in ours):
        counterpart, how = pairs.get(name, ("", ""))
        weight, golden = ours.get(name), theirs.get(counterpart)
        parts = [ours[part] for part in here.get(name, ())] or [theirs[part] for part in there.get(counterpart, ())]
        if weight is None:
            weight = joined_weight(name, parts, golden)
        elif parts:
            golden = joined_weight(counterpart, parts, weight)
        yield WeightRow(weight, golden, how, "" if counterpart else SAID if name in alone else ONLY_TARGET, parts=parts)
    taken = {part for name, _ in pairs.values() for part in there.get(name, (name,))}
    yield from (WeightRow(None, each, "", ONLY_GOLDEN) for name, each in theirs.items() if name not in taken)


def _measure(row: WeightRow, target: Weight, golden: Weight, holders: Holders) -> None:
    try:
        mine, theirs = target.load(), golden.load()
        order = order_of(row.parts, golden if is_fused(target.name) else target) if row.parts else ""
    except (DumpFormatError, MemoryError) as error:
        row.result, row.note = (
            UNREADABLE,
            tr("{error}", error=error) if str(error) else tr("there is not memory enough for it"),
        )
        return
    if squeezed := mine.shape != theirs.shape and without_ones(mine.shape) == without_ones(theirs.shape):
        theirs = theirs.reshape(mine.shape)
    difference = tensor_difference(mine, theirs)
    row.metrics, row.deviation = difference.metrics, difference.relative_l2
    # Weights are stored, not computed: one rounding is all that may lie between them.
    row.tolerance = coarser(target.dtype, golden.dtype).epsilon
    dtypes = [] if same_dtype(target.dtype, golden.dtype) else [f"{target.dtype} against {golden.dtype}"]
    notes = [*dtypes, order, "the shapes differ in axes of length 1" if squeezed else ""]
    if mine.shape != theirs.shape:
        row.result = SHAPE
        notes.append(_like(mine, theirs, row.tolerance))
    elif row.deviation == 0:
        row.result = EQUAL
    elif row.deviation <= row.tolerance:
        cast = bool(dtypes) and mine.dtype.kind != "c" and _is_rounding(mine, theirs, target.dtype, golden.dtype)
        row.result = CAST if cast else CLOSE
    else:
        row.result = DIFFERS
        notes.append(not_finite(mine, theirs) or _like(mine, theirs, row.tolerance))
    if not row.parts and mine.shape == theirs.shape:
        holders.note(target, golden, mine, theirs)
    row.note = tr_join(tr("; "), filter(None, notes))


def _tell_holders(comparison: WeightComparison, holders: Holders) -> None:
    """Which differ because they hold what another should."""
    differing = {row.name: row for row in comparison.with_result(DIFFERS)}
    found = holders.find([*differing])
    for name in found:
        row = differing[name]
        row.note = tr_join(tr("; "), filter(None, (row.note, holders.words(name, found))))
    comparison.exchanged += exchanges(found)


def _is_rounding(target: np.ndarray, golden: np.ndarray, target_dtype: str, golden_dtype: str) -> bool:
    """Whether no element is off by more than one rounding (to nearest, or towards zero) to the coarser dtype."""
    epsilon = coarser(target_dtype, golden_dtype).epsilon
    # Below the smallest normal number of float16 roundings are absolute: 2^-24.
    smallest = 2.0**-24 if "float16" in (parse_dtype(target_dtype).name, parse_dtype(golden_dtype).name) else 0.0
    mine, theirs = target.reshape(-1), golden.reshape(-1)
    for start in range(0, theirs.size, _BLOCK):
        exact = theirs[start : start + _BLOCK].astype(np.float64)
        # Where both are not finite they were found equal before; their difference is no number.
        with np.errstate(invalid="ignore"):
            error = np.abs(mine[start : start + _BLOCK] - exact)
        if (error > np.maximum(epsilon * np.abs(exact), smallest)).any():
            return False
    return True


def _like(mine: np.ndarray, theirs: np.ndarray, tolerance: float) -> str:
    """What would make the two agree, if that is simple."""
    if cause := cause_of(mine, theirs):
        return cause
    if mine.ndim == theirs.ndim == 2 and mine.shape == theirs.shape[::-1]:
        transposed = tensor_difference(mine, np.ascontiguousarray(theirs.T))
        if transposed.relative_l2 <= tolerance:
            return tr("close when transposed")
    return ""


def _find_tied(comparison: WeightComparison, side: str) -> None:
    """Parameters of one side alone that share their numbers with one that was compared are not missing.

    PyTorch tells which share a storage; in other files the only other parameter of the same shape, if equal, is taken
    for it.
    """
    compared = [
        weight
        for row in comparison.rows
        if row.target is not None and row.golden is not None and (weight := getattr(row, side)) is not None
    ]
    by_storage = {weight.storage: weight for weight in compared if weight.storage is not None}
    by_shape: dict[tuple[int, ...], list[Weight]] = {}
    for weight in compared:
        by_shape.setdefault(weight.shape, []).append(weight)
    for row in comparison.with_result(ONLY_TARGET if side == "target" else ONLY_GOLDEN):
        weight = getattr(row, side)
        other = by_storage.get(weight.storage) if weight.storage is not None else None
        alike = by_shape.get(weight.shape, [])
        if other is None and len(weight.shape) > 1 and len(alike) == 1 and _equal(weight, alike[0]):
            other = alike[0]
        if other is not None:
            row.result, row.note = TIED, tr("the same numbers as {name}, which was compared", name=other.name)


def _pair_renamed(comparison: WeightComparison) -> None:
    """Set parameters without a counterpart beside those of other names whose very numbers they hold.

    Where the other pairs say that such numbers are those of another parameter, beside that one.
    """
    ours = {row.name: row for row in comparison.with_result(ONLY_TARGET)}
    theirs = {row.name: row.golden for row in comparison.with_result(ONLY_GOLDEN) if row.golden is not None}
    by_name = {row.name: row.golden.name for row in comparison.rows if row.target and row.golden and not row.parts}
    comparison.renamed, moved = renamed(
        (row.target for row in ours.values() if row.target is not None), theirs.values(), by_name
    )
    comparison.renamed |= moved
    holders = Holders()
    for name, other in comparison.renamed.items():
        row = ours[name]
        if row.target is not None:
            row.golden, row.how = theirs[other], "place" if name in moved else "numbers"
            _measure(row, row.target, row.golden, holders)
            if name not in moved:
                row.result = RENAMED
    gone = set(comparison.renamed.values())
    comparison.rows = [row for row in comparison.rows if row.target is not None or row.name not in gone]
    _tell_holders(comparison, holders)


def _equal(one: Weight, other: Weight) -> bool:
    try:
        return bool(np.array_equal(one.load(), other.load()))
    except (DumpFormatError, MemoryError):
        return False
