"""Say in lines of text what is known of a node: its part in the error, what explains it, what its elements tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msprobe_ms.arrays.worst_elements import EQUAL, NON_FINITE, AxisShare, Element, Study
from msprobe_ms.comparison.model import Comparison, Origin
from msprobe_ms.comparison.node.lookup import Chosen
from msprobe_ms.dump.model import Dump, ancestors

_AGREES = "nothing here differs by more than its dtype explains"
_REFUTED = "what differs here is what was recorded; every later use of the tensor agrees"


def status_lines(chosen: Chosen, comparison: Comparison, target: Dump) -> Iterator[str]:
    """Say whether error begins in a node, came from elsewhere or is none; nothing where no value has a counterpart."""
    names = {pair.target.name for pair in chosen.pairs if pair.target is not None}
    entries = {id(origin): _entry_name(target, origin) for origin in comparison.origins}
    own = [origin for origin in comparison.origins if entries[id(origin)] in names]
    inside = [origin for origin in comparison.origins if names & set(ancestors(target.entries, entries[id(origin)]))]
    if own:
        for origin in own:
            yield f"ORIGIN: {origin.target}: {origin.reason}"
            yield from (f"  {detail}" for detail in origin.details)
    elif inside:
        yield f"the error begins inside: {inside[0].target}: {inside[0].reason}"
        yield from (f"  {detail}" for detail in inside[0].details)
    elif not any(row.matched for row in chosen.rows):
        return
    elif not chosen.differs:
        yield f"agrees: {_REFUTED if any(row.misrecorded for row in chosen.rows) else _AGREES}"
    else:
        source = next((row.inherited_from for row in chosen.rows if row.differs and row.inherited_from), "")
        order = {pair.target.name: place for place, pair in enumerate(comparison.pairs) if pair.target}
        place = min((order[name] for name in names), default=0)
        earlier = [origin for origin in comparison.origins if order.get(entries[id(origin)], place) < place]
        earlier = [origin for origin in comparison.origins if origin.target == source] or earlier
        if source and not earlier:
            yield f"inherits: the error begins at {source}"
        elif earlier:
            yield f"inherits: the error begins earlier, at {earlier[0].target}: {earlier[0].reason}"
        else:
            yield "differs, and no origin lies before it: slow drift, or switching at kinks (ReLU, pooling)"


def _entry_name(dump: Dump, origin: Origin) -> str:
    """The entry of an origin, whose ``target`` is an entry or an item."""
    name = origin.target
    while name and name not in dump.entries:
        name = name.rpartition(".")[0]
    return name


#: Decades told one by one, from the largest error down; what is below is told in one line.
_DECADES = 10
#: Characters of a full bar.
_BAR = 20


def element_lines(study: Study, *, noise: bool = False) -> Iterator[str]:
    """``study`` for a person; one line where all elements are equal. Of ``noise`` it is not said what it is like."""
    if not study.differing:
        yield f"elements: all {study.size} equal"
        return
    yield f"elements: {study.differing} of {study.size} differ{_one_sided(study)}"
    if study.likeness and not noise:
        yield f"it looks as if {study.likeness}" if "when" not in study.likeness else study.likeness
    yield "largest errors:"
    yield from _table(study.largest)
    yield "largest relative errors:"
    yield from _table(study.largest_relative)
    yield from _histogram(study)
    if not noise:
        yield from _axes(study.axes)


def _one_sided(study: Study) -> str:
    non_finite = study.absolute[NON_FINITE]
    return f"; {non_finite} are NaN or infinite on one side alone, or differently" if non_finite else ""


def _table(elements: Sequence[Element]) -> Iterator[str]:
    table = [("index", "target", "golden", "absolute", "relative")]
    for each in elements:
        index = f"[{', '.join(map(str, each.index))}]"
        table.append(
            (index, f"{each.target:.9g}", f"{each.golden:.9g}", f"{each.absolute:.4g}", f"{each.relative:.4g}")
        )
    widths = [max(len(line[place]) for line in table) for place in range(5)]
    for line in table:
        yield "  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))


def _histogram(study: Study) -> Iterator[str]:
    """One line a decade, both errors side by side."""
    decades = sorted({*study.absolute, *study.relative} - {EQUAL, NON_FINITE}, reverse=True)
    lowest = decades[0] - _DECADES + 1 if decades else 0
    kept = [decade for decade in decades if decade >= lowest]
    lines = [("not finite", study.absolute[NON_FINITE], study.relative[NON_FINITE])]
    if kept:
        lines += [
            (f"1e{decade:+03d} to 1e{decade + 1:+03d}", study.absolute[decade], study.relative[decade])
            for decade in range(kept[0], kept[-1] - 1, -1)
        ]
        lines.append((f"below 1e{lowest:+03d}", _below(study.absolute, lowest), _below(study.relative, lowest)))
    lines.append(("equal", study.absolute[EQUAL], study.relative[EQUAL]))
    lines = [line for line in lines if line[1] or line[2]]
    head = f"{'error':>14}  {'absolute':>{8 + _BAR}}  {'relative':>{8 + _BAR}}"
    yield "how many elements have which error:"
    yield f"  {head}"
    for title, absolute, relative in lines:
        yield f"  {title:>14}  {_bar(absolute, study.size)}  {_bar(relative, study.size)}"


def _below(bins: Counter[int], lowest: int) -> int:
    return sum(count for decade, count in bins.items() if EQUAL < decade < lowest)


def _bar(count: int, size: int) -> str:
    share = count / size
    return f"{'#' * round(share * _BAR):>{_BAR}} {share:>7.2%}"


def _axes(axes: Sequence[AxisShare]) -> Iterator[str]:
    if not axes:
        return
    yield "where the squared error sits:"
    for each in axes:
        yield (
            f"  axis {each.axis} of size {each.size}: index {each.place} holds {each.share:.1%}, "
            f"{each.holding} of {each.size} hold 90 %{'  <-- concentrated' if each.is_concentrated else ''}"
        )
