"""Scores as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.faults.score import Score


def misses(scores: Iterable[Score]) -> Iterator[str]:
    for score in scores:
        if not score.hit:
            expected = f"planted in {score.planted or 'the net'}" if score.case.fault else "healthy"
            yield f"MISS {score.case}: {expected}"
            for place, (name, reason) in enumerate(score.origins[:3], 1):
                yield f"   {place}. {name}: {reason}"
            if not score.origins:
                yield "   no origin"


def table(scores: Sequence[Score]) -> Iterator[str]:
    """A line for each net, a column for each way to compare: faults named first, healthy pairs without an origin."""
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
    yield f"planted module is the first origin: {_share(faults)}; no origin in a healthy pair: {_share(healthy)}"


def _column(score: Score) -> str:
    case = score.case
    kind = "faults" if case.fault else "healthy"
    return f"{kind}/{case.golden}/{case.mode}" + ("" if case.level == "L0" else f"/{case.level}")


def _count(scores: Sequence[Score]) -> str:
    return f"{sum(score.hit for score in scores)}/{len(scores)}" if scores else "-"


def _share(scores: Sequence[Score]) -> str:
    return f"{_count(scores)} ({sum(score.hit for score in scores) / len(scores):.1%})" if scores else "-"
