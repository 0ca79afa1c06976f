"""The part of a page that reads without its script: the verdict, the reason, what to do next, what was compared."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from msprobe_ms import __version__
from msprobe_ms.comparison.model import Origin, Outcome, Pair
from msprobe_ms.comparison.pairing.coverage import anything_compared
from msprobe_ms.comparison.reporting.facts import fact_lines
from msprobe_ms.comparison.reporting.terminal import (
    HEADS,
    IN_STAGE,
    call_site,
    judgement_lines,
    required_line,
)
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.dump.model import Dump
from msprobe_ms.page.template import escaped
from msprobe_ms.support.translation import tr, tr_beginning, tr_list, translated

#: Further origins that are told; the others are in the page's table.
_TOLD = 5
#: Longest sentence that is shown whole, in characters.
_SENTENCE = 2_000
#: The word that a line begins with, in Chinese with its translation, and the rest of the line.
_VERDICT = re.compile(r"([\w/]*(?:（[^）]*）)?)[:：]?\s*(.*)", re.ASCII | re.DOTALL)
_DISCLOSES = {
    True: tr(
        "This file holds statistics of the recorded tensors, the names of modules and functions, "
        "paths of the dumps, and paths and lines of the source code that made the calls. With "
        "--html-no-stacks there are no paths and no code."
    ),
    False: tr(
        "This file holds statistics of the recorded tensors and the names of modules and functions. "
        "Paths and code were left out."
    ),
}


def title_of(outcome: Outcome) -> str:
    """Return the page's title, as a browser's tab shows it."""
    comparison = outcome.comparison
    where = tr(" at {target}", target=comparison.origins[0].target) if comparison.origins else ""
    beginning = tr("{title}: ", title=outcome.title) if outcome.title else ""
    return tr("{beginning}{verdict}{where}", beginning=beginning, verdict=HEADS[comparison.verdict], where=where)


def verdict_html(outcome: Outcome, proofs: str = "", *, stacks: bool = True) -> str:
    """Return the header: the verdict in a sentence, its reason, the place of ``proofs``, and what to do next."""
    comparison = outcome.comparison
    named = comparison.pairs if stacks else ()
    by_name = {pair.target.name: pair for pair in named if pair.target is not None}
    origins = comparison.origins
    # Of a loss that differs beside calls that could not be paired, nobody knows where its error begins.
    begins = bool(origins) and anything_compared(comparison.pairs)
    lines = [*(_first(origins[0], by_name) if begins else _judgement(outcome)), proofs, *_others(origins[1:])]
    facts = _listed(
        "facts",
        (
            line if stacks else without_paths(line, {"target": outcome.target, "golden": outcome.golden})
            for line in fact_lines(outcome)
        ),
    )
    facts += _overview(outcome)
    return f'<header id="verdict" class="{comparison.verdict}">\n' + "\n".join([*lines, facts]) + "\n</header>"


def _first(first: Origin, by_name: dict[str, Pair]) -> Iterator[str]:
    told = escaped(tr("The error begins {stage}at", stage=IN_STAGE[first.stage]))
    yield f"<h1><strong>{escaped(HEADS[Verdict.DIVERGENT])}</strong> {told}</h1>"
    yield f'<p class="origin"><bdi>{escaped(first.target)}</bdi></p>'
    yield f'<p class="reason">{escaped(first.reason, _SENTENCE)}</p>'
    yield _listed("details", first.details or filter(None, [required_line(first)]))
    terms = [(tr("golden"), first.golden), (tr("called at"), call_site(first, by_name))]
    told = "".join(f"<dt>{escaped(name)}</dt><dd><bdi>{escaped(text)}</bdi></dd>" for name, text in terms if text)
    yield f'<dl class="places">{told}</dl>'


def _others(origins: Sequence[Origin]) -> Iterator[str]:
    if origins:
        more = [tr("{target}: {reason}", target=each.target, reason=tr_beginning(each.reason)) for each in origins]
        yield f"<h2>{escaped(tr('Perhaps also at'))}</h2>{_listed('others', _few(more))}"


def _overview(outcome: Outcome) -> str:
    """The way from one of several pairs to the page over all of them, which its title is a part of; "" where alone."""
    page = next((file.name for file in outcome.files if outcome.title and file.suffix == ".html"), "")
    where = f'<a href="./{escaped(quote(page))}">{escaped(tr("all steps and ranks"))}</a>'
    told = escaped(tr("This is {part} of {whole}.")).format(part=f"<bdi>{escaped(outcome.title)}</bdi>", whole=where)
    return f'<p class="muted">{told}</p>' if page else ""


def _judgement(outcome: Outcome) -> Iterator[str]:
    first, *others = judgement_lines(outcome)
    yield headline(first)
    yield from (f'<p class="reason">{escaped(translated(line).strip(), _SENTENCE)}</p>' for line in others)


def headline(line: str) -> str:
    """Return the heading of a page: the verdict, which a line begins with, and the rest of the line."""
    found = _VERDICT.fullmatch(translated(line))
    word, rest = found.groups() if found else ("", line)
    return f"<h1><strong>{escaped(word)}</strong> {escaped(rest, _SENTENCE)}</h1>"


def without_paths(text: str, dumps: Mapping[str, Dump]) -> str:
    """Return text in which the folders of dumps are called what these are, as where one is damaged."""
    text = translated(text)
    for name, dump in dumps.items():
        text = text.replace(str(dump.path), name).replace(str(dump.path.parent), name)
    return text


def provenance(outcome: Outcome, *, stacks: bool = True) -> list[tuple[str, str]]:
    """Return what was compared, by what: pairs of a term and a text."""
    target, golden = outcome.target, outcome.golden
    return [
        (tr("target"), dump_text(target, path=stacks)),
        (tr("golden"), dump_text(golden, path=stacks)),
        (tr("compared by"), tr(str(outcome.comparison.mode))),
        (tr("files beside this one"), tr_list(file.name for file in outcome.files) or tr("none")),
        (tr("made by"), made_by()),
    ]


def made_by() -> str:
    """Return the versions of this package and of Python."""
    return f"msprobe-ms {__version__}, Python {platform.python_version()}"


def provenance_html(told: Iterable[tuple[str, str]], *, stacks: bool = True) -> str:
    """Return the section that says what was compared, and what the file discloses."""
    terms = "".join(f"<dt>{escaped(term)}</dt><dd><bdi>{escaped(text, _SENTENCE)}</bdi></dd>" for term, text in told)
    heading, discloses = escaped(tr("What this is made of")), escaped(_DISCLOSES[stacks], _SENTENCE)
    return f'<section id="provenance"><h2>{heading}</h2>\n<dl>{terms}</dl>\n<p>{discloses}</p></section>'


def dump_text(dump: Dump, *, path: bool = True) -> str:
    """Return where a dump is and what it holds."""
    held = tr("{framework}, level {level}, task {task}", framework=dump.framework, level=dump.level, task=dump.task)
    return tr("{path} ({held})", path=dump.path, held=held) if path else held


def _few(texts: Sequence[str]) -> list[str]:
    left = len(texts) - _TOLD
    return [*texts[:_TOLD], *([tr("and {left} more, listed below", left=left)] if left > 0 else [])]


def _listed(kind: str, texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escaped(text, _SENTENCE)}</li>" for text in texts)
    return f'<ul class="{kind}">{items}</ul>' if items else ""
