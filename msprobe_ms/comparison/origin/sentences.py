"""Sentences about rows, nodes and calls, for the reasons of origins.

Some put an origin in its place, or in doubt. Of several modules that the other side has fused, real data tells which an
origin lies in; statistics do not. Of a name that is called more often on one side, paired call by call, whatever
follows the call too many stands beside another. The pairing cannot know which call is the surplus; fuzzy matching looks
at what happened around it. So an origin at such a name may be no error at all, and says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from decimal import ROUND_CEILING, Context

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.measuring.deviation import four_statistics_deviation
from msprobe_ms.comparison.model import Metrics, Origin, OriginKind, Pair, Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.stages import stage_of
from msprobe_ms.comparison.pairing.arguments import OtherSetting
from msprobe_ms.comparison.pairing.fused_tensors import JoinedTensors
from msprobe_ms.comparison.statistics import describe_non_finite, element_count, have_sketches
from msprobe_ms.comparison.terms import PairedBy, Stage
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import DEBUG, FORWARD, EntryName, beginnings, is_fused, parse_entry
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.text import relative_to_size
from msprobe_ms.support.translation import tr, tr_count, tr_join

#: Characters of an origin's reason, and of each of its details, names of entries apart.
LONGEST_SENTENCE = 160
_LONGEST_VALUE = 30
#: The least factor that is told, and how near to a whole number a factor is one.
_LEAST_FACTOR, _WHOLE = 1.5, 1e-4
#: Two elements that change places move by about a root mean square. Where the whole difference is less than this share
#: of one, the elements stand in the same order and have other values.
_LEAST_EXCHANGE = 0.01


def describe_difference(row: Row) -> str:
    """Say how a row differs, in values, shapes or its deviation beside what it is held to."""
    suffix, target, golden = _suffix(row), row.target, row.golden
    if target is not None and golden is not None and "value" in (target.kind, golden.kind):
        return tr("{suffix} is {target} against {golden}", suffix=suffix, target=_value(target), golden=_value(golden))
    if row.deviation is None:
        return tr("{suffix} could not be compared", suffix=suffix)
    if target is not None and golden is not None and target.shape != golden.shape:
        shapes = tr(
            "{suffix} has shape {shape} against {other_shape}",
            suffix=suffix,
            shape=_shape(target.shape),
            other_shape=_shape(golden.shape),
        )
        if math.isinf(row.deviation):
            return shapes
        return tr(
            "{shapes} and deviates by {size} (tolerance {held_to:.3g})",
            shapes=shapes,
            size=relative_to_size(row.deviation),
            held_to=row.held_to,
        )
    if row.deviation == math.inf and target is not None and golden is not None:
        return _beyond_measure(suffix, target, golden)
    return tr(
        "{suffix} deviates by {size} (tolerance {held_to:.3g})",
        suffix=suffix,
        size=relative_to_size(row.deviation),
        held_to=row.held_to,
    )


def describe_briefly(row: Row) -> str:
    """Say in a few words how a row differs, where there is no room for shapes and tolerance."""
    difference = describe_difference(row)
    if "has shape" in difference:
        return tr("{suffix} has another shape", suffix=_suffix(row))
    if "(tolerance" in difference:
        return tr("{suffix} deviates by {size}", suffix=_suffix(row), size=relative_to_size(row.deviation or 0.0))
    return difference


def describe_values(row: Row) -> str:
    """Name the two numbers of a row that holds one on each side."""
    target, golden = row.target, row.golden
    values = [item.maximum for item in (target, golden) if item is not None]
    if len(values) == 2 and all(isinstance(value, float) for value in values):
        mine, theirs = (f"{value:.6g}" for value in values)
        return tr("{mine} against {theirs}", mine=mine, theirs=theirs)
    return describe_difference(row)


def describe_factor(row: Row) -> str:
    """Say that one of two numbers is a whole multiple of the other, as scales and reductions make it; "" if not."""
    numbers = [item.maximum for item in (row.target, row.golden) if item is not None]
    if len(numbers) != 2 or not all(isinstance(each, float) and math.isfinite(each) and each for each in numbers):
        return ""
    mine, theirs = map(float, numbers)  # type: ignore[arg-type]
    factor, larger, other = max(
        (mine / theirs, tr("target"), tr("golden")), (theirs / mine, tr("golden"), tr("target"))
    )
    if factor < _LEAST_FACTOR or abs(factor / round(factor) - 1) > _WHOLE:
        return ""
    return tr(
        "the {larger}'s is {factor} times the {other}'s: look at the loss scale, at sum and mean",
        larger=larger,
        factor=round(factor),
        other=other,
    )


def _suffix(row: Row) -> str:
    item = row.target or row.golden
    # What a save holds may be the tensor itself, with no place of its own.
    return (item.suffix if item is not None else "") or tr("it")


def _value(item: Item) -> str:
    """A value that is no tensor; a long text is cut."""
    return _shortened(str(item.maximum))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def fitting(*sentences: str) -> str:
    """Return the first of several wordings, longest first, that fits a line; the last where none does."""
    return next((each for each in sentences if len(each) <= LONGEST_SENTENCE), sentences[-1])


def describe_setting(setting: OtherSetting) -> str:
    """Return a setting that differs, in words."""
    mine, other = (_shortened(", ".join(map(str, values))) for values in (setting.target, setting.golden))
    return tr("{name} is {mine}, the golden's is {other}", name=setting.name, mine=mine, other=other)


def describe_order(row: Row) -> str:
    """Say that the four statistics agree, so that the order of elements makes the difference; "" where they do not."""
    target, golden = row.target, row.golden
    if target is None or golden is None or target.shape != golden.shape or not have_sketches(target, golden):
        return ""
    by_statistics = four_statistics_deviation(target, golden)
    agree = row.differs and by_statistics is not None and by_statistics <= (row.held_to or 0.0)
    agree = agree and (row.deviation or 0.0) * math.sqrt(max(1, element_count(golden))) >= _LEAST_EXCHANGE
    return tr("its Max, Min, Mean and Norm agree: look at the order of its elements") if agree else ""


def _beyond_measure(suffix: str, target: Item, golden: Item) -> str:
    mine, theirs = describe_non_finite(target), describe_non_finite(golden)
    if mine and not theirs:
        return tr("{suffix} holds {mine}, the golden's is finite", suffix=suffix, mine=mine)
    if theirs and not mine:
        return tr("{suffix} is finite, the golden's holds {theirs}", suffix=suffix, theirs=theirs)
    if target.md5 != golden.md5 and None not in (target.md5, golden.md5):
        return tr("the checksums of {suffix} differ", suffix=suffix)
    return tr("the difference of {suffix} cannot be measured (NaN or infinite)", suffix=suffix)


def describe_required(required: float, tolerance: float | None) -> str:
    """Name the tolerance that a value would agree under, and how many times its own that is.

    "" where that is no more than its tolerance.
    """
    if tolerance is not None and required <= tolerance:
        return ""
    excess = describe_excess(required, tolerance)
    times = tr("{excess}; ", excess=excess) if excess else ""
    return tr("{times}a tolerance of {required} would accept it", times=times, required=_rounded_up(required))


def describe_excess(required: float, tolerance: float | None) -> str:
    """Say how many times its tolerance a value deviates by; "" where that is no more than one, or none is known."""
    if not tolerance or required <= tolerance:
        return ""
    return tr("its deviation is {times} times its tolerance", times=_rounded_up(required / tolerance))


def _rounded_up(value: float) -> str:
    """Three digits, the next that are not less than the value.

    >>> _rounded_up(0.029411), _rounded_up(0.0294), _rounded_up(123456.0)
    ('0.0295', '0.0294', '124000')
    """
    up = float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(repr(float(value))))
    return f"{up:.3g}" if up < 1000 or up >= 1e6 else f"{up:.0f}"


def _shape(shape: object) -> str:
    return str(list(shape)) if isinstance(shape, tuple) else str(shape)


def describe_caller(node: Node) -> str:
    """Name the call around a function or kernel; "" of modules."""
    # A dump of functions or kernels names modules that have no entries in it.
    target = node.pair.target
    around = node.parent.name if node.parent is not None else target.parent if target is not None else None
    if around is None or (node.parsed is not None and node.parsed.is_module):
        return ""
    return tr("it is called in {around}", around=around)


def origin_at(
    row: Row,
    reason: str,
    details: Iterable[str] = (),
    kind: OriginKind = OriginKind.COMPUTATION,
    stage: Stage | None = None,
) -> Origin:
    """Make the origin that ``row`` is; of the details those that say something are kept.

    ``stage`` is given where the name of the entry does not tell it.

    Its ``required_tolerance`` is what the row deviates by: up to there it would have been held to agree.
    """
    assert row.target is not None and row.golden is not None
    metrics: Metrics = dict(row.metrics)
    metrics["deviation"], metrics["tolerance"] = row.deviation, row.held_to
    said = tuple(filter(None, details))
    stage = stage or stage_of(row.target.entry, kind)
    return Origin(row.target.name, row.golden.name, row.target.state, reason, metrics, kind, row.deviation, said, stage)


def name_fused_parts(origins: Sequence[Origin], pairs: Sequence[Pair], target: Dump, golden: Dump) -> list[Origin]:
    """Return the origins, those in fused modules with a detail that says which of them differ where not all do."""
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
            told_parts = tr_count(
                "of {parts} fused only {names} differs",
                "of {parts} fused only {names} differ",
                len(differing), parts=len(parts), names=tr_join(tr(" and "), differing),
            )  # fmt: skip
            origin = replace(origin, details=(told_parts, *origin.details))
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


#: What pairs calls otherwise than by their number.
_FOUND_THEIR_OWN = (PairedBy.DATA, PairedBy.API, PairedBy.SCOPE, PairedBy.GROUP)

#: A name of a call without its index, and the direction in which its calls are counted.
Name = tuple[str, str, str, str]


def note_shifted_calls(origins: Sequence[Origin], pairs: Sequence[Pair]) -> list[Origin]:
    """Return the origins; where a name is called another number of times on the other side a detail says so."""
    wanted = {origin.target for origin in origins}
    if not origins:
        return []
    entries = {beginning for name in wanted for beginning in beginnings(name)}
    places: dict[str, Pair] = {}
    for pair in pairs:
        if pair.target is not None and pair.target.name in entries:
            places.update((row.target.name, pair) for row in pair.rows if row.target and row.target.name in wanted)
    both = [entry for pair in places.values() for entry in (pair.target, pair.golden)]
    named = {entry.parsed.name for entry in both if entry is not None and entry.parsed is not None}
    ours, theirs = _counts((pair.target for pair in pairs), named), _counts((pair.golden for pair in pairs), named)
    shifted = {
        _name(pair.target.parsed, pair.target.parsed.direction)
        for pair in pairs
        if pair.target and pair.golden and pair.target.parsed and pair.golden.parsed
        and pair.target.parsed.name in named
        and (pair.target.parsed.index or 0) != (pair.golden.parsed.index or 0)
    }  # fmt: skip
    told = []
    for origin in origins:
        place = places.get(origin.target)
        mine = place.target.parsed if place and place.target else None
        counterpart = place.golden.parsed if place and place.golden else None
        # A parameter is the same at every call.
        if mine and counterpart and mine.direction != DEBUG and origin.state in ("input", "output"):
            # A dump of backwards alone has no forward to count.
            direction = (
                FORWARD if ours[_name(mine, FORWARD)] and theirs[_name(counterpart, FORWARD)] else mine.direction
            )
            here, there = ours[_name(mine, direction)], theirs[_name(counterpart, direction)]
            # Calls that pair inside their module, or by a mapping, have found their own.
            found = place is not None and place.how in _FOUND_THEIR_OWN
            if here != there and not found and _name(mine, direction) not in shifted:
                origin = replace(origin, details=(_sentence(mine, here, there), *origin.details))
        told.append(origin)
    return told


def _sentence(mine: EntryName, here: int, there: int) -> str:
    name = ".".join(part for part in (mine.prefix, mine.name, mine.class_name) if part)
    return tr(
        "{name} is called {times} in the target, {other_times} in the golden: after the first "
        "extra call, calls are paired with wrong counterparts; try -fm",
        name=name,
        times=_times(here),
        other_times=_times(there),
    )


def _times(count: int) -> str:
    return tr_count("once", "{count} times", count)


def _counts(entries: Iterable[Entry | None], named: Set[str]) -> Counter[Name]:
    """How often modules and functions of these names are called."""
    return Counter(
        _name(entry.parsed, entry.parsed.direction)
        for entry in entries
        if entry is not None and entry.parsed is not None and entry.parsed.name in named and not entry.recomputed
    )


def _name(parsed: EntryName, direction: str) -> Name:
    return parsed.prefix, parsed.name, parsed.class_name, direction
