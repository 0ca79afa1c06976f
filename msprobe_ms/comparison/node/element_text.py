"""What the elements of two tensors tell, as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msprobe_ms.arrays.worst_elements import EQUAL, NON_FINITE, AxisShare, Element, Study

#: Decades told one by one, from the largest error down; what is below is told in one line.
_DECADES = 10
#: Characters of a full bar.
_BAR = 20
#: Error is said to sit in some slices of an axis where so many times fewer than all hold 90 % of it, or one holds half:
#: random error of few slices is uneven too.
_CONCENTRATED, _HALF = 3, 0.5


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
        sits = each.holding * _CONCENTRATED <= each.size or (each.size > 2 and each.share >= _HALF)
        yield (
            f"  axis {each.axis} of size {each.size}: index {each.place} holds {each.share:.1%}, "
            f"{each.holding} of {each.size} hold 90 %{'  <-- concentrated' if sits else ''}"
        )
