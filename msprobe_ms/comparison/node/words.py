"""Say in lines of text what is known of a node: its part in the error, what explains it, what its elements tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msprobe_ms.arrays.worst_elements import EQUAL, NON_FINITE, AxisShare, Element, Study
from msprobe_ms.comparison.model import Comparison, Origin
from msprobe_ms.comparison.node.lookup import Chosen
from msprobe_ms.dump.model import Dump, ancestors
from msprobe_ms.support.text import table_lines
from msprobe_ms.support.translation import tr

_AGREES = tr("all values agree within rounding error")
_REFUTED = tr("the recorded value differs, but every later use of the tensor agrees")


def status_lines(chosen: Chosen, comparison: Comparison, target: Dump) -> Iterator[str]:
    """Say whether error begins in a node, came from elsewhere or is none; nothing where no value has a counterpart."""
    names = {pair.target.name for pair in chosen.pairs if pair.target is not None}
    entries = {id(origin): _entry_name(target, origin) for origin in comparison.origins}
    own = [origin for origin in comparison.origins if entries[id(origin)] in names]
    inside = [origin for origin in comparison.origins if names & set(ancestors(target.entries, entries[id(origin)]))]
    if own:
        for origin in own:
            yield tr("ORIGIN: {target}: {reason}", target=origin.target, reason=origin.reason)
            yield from (tr("  {detail}", detail=detail) for detail in origin.details)
    elif inside:
        yield tr("the error begins inside: {target}: {reason}", target=inside[0].target, reason=inside[0].reason)
        yield from (tr("  {detail}", detail=detail) for detail in inside[0].details)
    elif not any(row.matched for row in chosen.rows):
        return
    elif not chosen.differs:
        yield tr("agrees: {which}", which=_REFUTED if any(row.misrecorded for row in chosen.rows) else _AGREES)
    else:
        source = next((row.inherited_from for row in chosen.rows if row.differs and row.inherited_from), "")
        first = next((item.entry for row in chosen.rows if row.differs and (item := row.target or row.golden)), "")
        order = {pair.target.name: place for place, pair in enumerate(comparison.pairs) if pair.target}
        place = min((order[name] for name in names), default=0)
        earlier = [origin for origin in comparison.origins if order.get(entries[id(origin)], place) < place]
        earlier = [origin for origin in comparison.origins if origin.target == source] or earlier
        if source and not earlier:
            yield tr("{entry} inherits its error, which begins at {source}", entry=first, source=source)
        elif earlier:
            yield tr(
                "{entry} inherits its error, which begins earlier, at {target}: {reason}",
                entry=first,
                target=earlier[0].target,
                reason=earlier[0].reason,
            )
        else:
            yield tr("differs, but no origin comes before it: slow drift, or ReLU or pooling that switches")


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
        yield tr("elements: all {size} equal", size=study.size)
        return
    yield tr(
        "elements: {differing} of {size} differ{one_sided}",
        differing=study.differing,
        size=study.size,
        one_sided=_one_sided(study),
    )
    if study.likeness and not noise:
        yield (
            tr("it looks as if {likeness}", likeness=study.likeness) if "when" not in study.likeness else study.likeness
        )
    yield tr("largest errors:")
    yield from _table(study.largest)
    yield tr("largest relative errors:")
    yield from _table(study.largest_relative)
    yield from _histogram(study)
    if not noise:
        yield from _axes(study.axes)


def _one_sided(study: Study) -> str:
    non_finite = study.absolute[NON_FINITE]
    return (
        tr("; {non_finite} are NaN or infinite on one side alone, or differently", non_finite=non_finite)
        if non_finite
        else ""
    )


def _table(elements: Sequence[Element]) -> Iterator[str]:
    table = [(tr("index"), tr("target"), tr("golden"), tr("absolute"), tr("relative"))]
    for each in elements:
        index = f"[{', '.join(map(str, each.index))}]"
        table.append(
            (index, f"{each.target:.9g}", f"{each.golden:.9g}", f"{each.absolute:.4g}", f"{each.relative:.4g}")
        )
    yield from table_lines(table, right=True)


def _histogram(study: Study) -> Iterator[str]:
    """One line a decade, both errors side by side."""
    decades = sorted({*study.absolute, *study.relative} - {EQUAL, NON_FINITE}, reverse=True)
    lowest = decades[0] - _DECADES + 1 if decades else 0
    kept = [decade for decade in decades if decade >= lowest]
    lines = [(tr("not finite"), study.absolute[NON_FINITE], study.relative[NON_FINITE])]
    if kept:
        lines += [
            (
                tr("1e{decade:+03d} to 1e{other_decade:+03d}", decade=decade, other_decade=decade + 1),
                study.absolute[decade],
                study.relative[decade],
            )
            for decade in range(kept[0], kept[-1] - 1, -1)
        ]
        lines.append(
            (tr("below 1e{lowest:+03d}", lowest=lowest), _below(study.absolute, lowest), _below(study.relative, lowest))
        )
    lines.append((tr("equal"), study.absolute[EQUAL], study.relative[EQUAL]))
    lines = [line for line in lines if line[1] or line[2]]
    table = [
        (tr("element error"), tr("absolute"), tr("relative")),
        *((title, _bar(absolute, study.size), _bar(relative, study.size)) for title, absolute, relative in lines),
    ]
    yield tr("how many elements have which error:")
    yield from table_lines(table, right=True)


def _below(bins: Counter[int], lowest: int) -> int:
    return sum(count for decade, count in bins.items() if EQUAL < decade < lowest)


def _bar(count: int, size: int) -> str:
    share = count / size
    return f"{'#' * round(share * _BAR):>{_BAR}} {share:>7.2%}"


def _axes(axes: Sequence[AxisShare]) -> Iterator[str]:
    if not axes:
        return
    yield tr("distribution of the squared error:")
    for each in axes:
        yield (
            tr(
                "  axis {axis} of size {size}: index {place} holds {share:.1%}, {holding} of {size} hold 90 %{which}",
                axis=each.axis,
                size=each.size,
                place=each.place,
                share=each.share,
                holding=each.holding,
                which=tr("  <-- concentrated") if each.is_concentrated else "",
            )
        )
