"""Scores as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torture.faults.alignment import Alignment
from torture.faults.score import Score


def misses(scores: Iterable[Score]) -> Iterator[str]:
    for score in scores:
        if not score.hit:
            expected = f"planted in {score.planted or 'the net'}" if score.case.fault else "healthy"
            yield f"MISS {score.case}: {expected}"
            for place, (name, reason) in enumerate(score.origins[:3], 1):
                yield f"   {place}. {name}: {reason}"
            if not score.origins:
                yield f"   no origin; {score.verdict}"


def table(scores: Sequence[Score]) -> Iterator[str]:
    """A line for each net, a column for each way to compare: faults named first, healthy pairs found consistent."""
    columns = list(dict.fromkeys(_column(score) for score in scores))
    nets = list(dict.fromkeys(score.case.net for score in scores))
    width = max(map(len, (*nets, "together")), default=0)
    yield "  ".join((" " * width, *columns))
    for net in (*nets, "together"):
        chosen = [score for score in scores if net in (score.case.net, "together")]
        cells = [_count([score for score in chosen if _column(score) == column]) for column in columns]
        yield "  ".join(
            (net.ljust(width), *(cell.rjust(len(column)) for cell, column in zip(cells, columns, strict=True)))
        )
    faults = [score for score in scores if score.case.fault]
    healthy = [score for score in scores if not score.case.fault]
    yield f"planted module is the first origin: {_share(faults)}; healthy pair consistent: {_share(healthy)}"


def alignment_table(scores: Sequence[Score]) -> Iterator[str]:
    """A line for each variant: F1 and precision of the module pairs, faults and healthy pairs as in ``table``."""
    yield f"{'variant':12}  {'F1':>6}  precision  {'faults':>8}  {'healthy':>8}  least F1"
    for variant in (*dict.fromkeys(score.case.variant for score in scores), "together"):
        chosen = [score for score in scores if variant in (score.case.variant, "together")]
        total = _sum(chosen)
        faults = _count([score for score in chosen if score.case.fault])
        healthy = _count([score for score in chosen if not score.case.fault])
        worst = min((_sum([score]).f1, str(score.case)) for score in chosen)
        yield (
            f"{variant:12}  {total.f1:6.3f}  {total.precision:9.3f}  {faults:>8}  {healthy:>8}  "
            f"{worst[0]:.3f} {worst[1] if worst[0] < 1 else ''}"
        )


def _sum(scores: Iterable[Score]) -> Alignment:
    return sum((score.alignment for score in scores if score.alignment), Alignment(0, 0, 0))


def _column(score: Score) -> str:
    case = score.case
    kind = "faults" if case.fault else "healthy"
    return f"{kind}/{case.golden}/{case.mode}" + ("" if case.level == "L0" else f"/{case.level}")


def _count(scores: Sequence[Score]) -> str:
    return f"{sum(score.hit for score in scores)}/{len(scores)}" if scores else "-"


def _share(scores: Sequence[Score]) -> str:
    return f"{_count(scores)} ({sum(score.hit for score in scores) / len(scores):.1%})" if scores else "-"
