"""The part of a page that reads without its script: the verdict, the reason, what to do next, what was compared."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata

from msprobe_ms.comparison.model import Origin, Outcome, Pair
from msprobe_ms.comparison.reporting.terminal import (
    IN_STAGE,
    call_site,
    fact_lines,
    judgement_lines,
    required_line,
)
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.dump.model import Dump
from msprobe_ms.page.template import escaped

#: Further origins that are told; the others are in the page's table.
_TOLD = 5
#: Longest sentence that is shown whole, in characters.
_SENTENCE = 2_000
_DISCLOSES = (
    "This file holds statistics of the recorded tensors, the names of modules and functions, and paths and lines "
    "of the source code that called them."
)


def title_of(outcome: Outcome) -> str:
    """Return the page's title, as a browser's tab shows it."""
    comparison = outcome.comparison
    where = f" at {comparison.origins[0].target}" if comparison.origins else ""
    beginning = f"{outcome.title}: " if outcome.title else ""
    return f"{beginning}{comparison.verdict.upper()}{where}"


def verdict_html(outcome: Outcome) -> str:
    """Return the header: the verdict in a sentence, its reason, and what to do next."""
    comparison = outcome.comparison
    by_name = {pair.target.name: pair for pair in comparison.pairs if pair.target is not None}
    lines = _origins(comparison.origins, by_name) if comparison.origins else _judgement(outcome)
    facts = _listed("facts", fact_lines(outcome))
    return f'<header id="verdict" class="{comparison.verdict}">\n' + "\n".join([*lines, facts]) + "\n</header>"


def _origins(origins: Sequence[Origin], by_name: dict[str, Pair]) -> Iterator[str]:
    first, *others = origins
    stage = escaped(IN_STAGE[first.stage])
    yield f"<h1><strong>{Verdict.DIVERGENT.upper()}</strong> The error begins {stage}at</h1>"
    yield f'<p class="origin"><bdi>{escaped(first.target)}</bdi></p>'
    yield f'<p class="reason">{escaped(first.reason, _SENTENCE)}</p>'
    yield _listed("details", first.details or filter(None, [required_line(first)]))
    terms = [("golden", first.golden), ("called at", call_site(first, by_name))]
    told = "".join(f"<dt>{name}</dt><dd><bdi>{escaped(text)}</bdi></dd>" for name, text in terms if text)
    yield f'<dl class="places">{told}</dl>'
    if others:
        more = [f"{each.target}: {each.reason.partition(': ')[0]}" for each in others]
        yield f"<h2>Perhaps also at</h2>{_listed('others', _few(more))}"


def _judgement(outcome: Outcome) -> Iterator[str]:
    first, *others = judgement_lines(outcome)
    word, _, rest = first.partition(" ")
    yield f"<h1><strong>{escaped(word.rstrip(':'))}</strong> {escaped(rest, _SENTENCE)}</h1>"
    yield from (f'<p class="reason">{escaped(line.strip(), _SENTENCE)}</p>' for line in others)


def provenance(outcome: Outcome) -> list[tuple[str, str]]:
    """Return what was compared, by what: pairs of a term and a text."""
    target, golden = outcome.target, outcome.golden
    return [
        ("target", dump_text(target)),
        ("golden", dump_text(golden)),
        ("compared by", f"{outcome.comparison.mode}"),
        ("files beside this one", ", ".join(file.name for file in outcome.files) or "none"),
        ("made by", made_by()),
    ]


def made_by() -> str:
    """Return the versions of this package and of Python."""
    return f"msprobe-ms {metadata.version('msprobe-ms')}, Python {platform.python_version()}"


def provenance_html(told: Iterable[tuple[str, str]]) -> str:
    """Return the section that says what was compared, and what the file discloses."""
    terms = "".join(f"<dt>{escaped(term)}</dt><dd><bdi>{escaped(text, _SENTENCE)}</bdi></dd>" for term, text in told)
    return f'<section id="provenance"><h2>What this is made of</h2>\n<dl>{terms}</dl>\n<p>{_DISCLOSES}</p></section>'


def dump_text(dump: Dump) -> str:
    """Return where a dump is and what it holds."""
    return f"{dump.path} ({dump.framework}, level {dump.level}, task {dump.task})"


def _few(texts: Sequence[str]) -> list[str]:
    left = len(texts) - _TOLD
    return [*texts[:_TOLD], *([f"and {left} more, listed below"] if left > 0 else [])]


def _listed(kind: str, texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escaped(text, _SENTENCE)}</li>" for text in texts)
    return f'<ul class="{kind}">{items}</ul>' if items else ""
