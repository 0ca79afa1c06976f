"""Describe a verdict for the terminal, in words a person can act on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote

from msprobe_ms.comparison.model import Comparison, Origin, OriginKind, Outcome, Pair
from msprobe_ms.comparison.origin.sentences import describe_required
from msprobe_ms.comparison.pairing.coverage import (
    anything_compared,
    has_modules,
    larger_side,
    sides_without_values,
    unmatched_modules,
)
from msprobe_ms.comparison.pairing.kernels import is_compiled
from msprobe_ms.comparison.reporting.facts import fact_lines, report_line
from msprobe_ms.comparison.terms import Stage, Verdict
from msprobe_ms.dump.dialects import outside_frameworks
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD
from msprobe_ms.support.text import and_more, listed
from msprobe_ms.support.translation import tr, tr_beginning, tr_count

#: Origins after the first, and names, that are told; the rest is in the summary.
_TOLD = 3
#: Where in the training step an error begins.
IN_STAGE = {
    Stage.DATA: tr("in the input data, "),
    Stage.PARAMETERS: tr("in the parameters, "),
    Stage.FORWARD: tr("in forward, "),
    Stage.LOSS: tr("in the loss, "),
    Stage.BACKWARD: tr("in backward, "),
    Stage.UPDATE: tr("in the update of the parameters, "),
    None: "",
}
#: Kinds of origins whose call can be run alone.
_PROVABLE = (OriginKind.COMPUTATION, OriginKind.PARAMETER, OriginKind.PRECISION)
_NOTHING_DIFFERS = tr("no value differs by more than its dtype explains")


def verdict_lines(outcome: Outcome, chosen: str | None = None) -> Iterator[str]:
    """Describe the verdict and where the error begins, what was compared and could not be, and where the report is.

    ``chosen``: of one of many pairs, the arguments of the command that choose it; "" where none do.
    """
    title = tr("{title}: ", title=outcome.title) if outcome.title else ""
    for line in judgement_lines(outcome, chosen):
        yield title + line
        title = ""
    yield from fact_lines(outcome)
    if outcome.files:
        yield report_line(outcome.files)
        yield from _proof_lines(outcome)


def _proof_lines(outcome: Outcome) -> Iterator[str]:
    """How to run the call alone that the error begins at, where it is a call that computes."""
    origin = next(iter(outcome.comparison.origins), None)
    summary = next((file for file in outcome.files if file.name.startswith("compare_summary")), None)
    if origin is not None and summary is not None and is_provable(origin):
        yield tr("which side is wrong, and by what: msprobe prove {summary}", summary=quote(str(summary)))


def is_provable(origin: Origin) -> bool:
    """Return whether the call of an origin can be run alone."""
    return origin.kind in _PROVABLE


def judgement_lines(outcome: Outcome, chosen: str | None = None) -> Iterator[str]:
    """Say DIVERGENT, INCOMPLETE or CONSISTENT, and what explains it; ``chosen`` as in ``verdict_lines``."""
    comparison = outcome.comparison
    paired = anything_compared(comparison.pairs)
    if empty := sides_without_values(comparison.pairs):
        yield from _structure_lines(comparison.pairs, empty)
    elif not paired and comparison.damage:
        yield tr("INCOMPLETE: nothing could be compared, as a dump is not whole")
    elif not paired:
        yield tr("DIVERGENT: nothing in the two dumps could be paired")
    elif comparison.origins:
        yield from _divergent_lines(outcome, chosen)
    elif comparison.random:
        yield tr("CONSISTENT up to a random operation, but INCOMPLETE: what follows it cannot be told")
        first, *others = comparison.random
        yield from _origin_lines(first, {})
        yield from _others_lines(tr("so does"), others)
    elif far := comparison.far_apart:
        inputs = tr_count("1 input of a call lies", "{count} inputs of calls lie", count=far)
        yield tr("DIVERGENT: no layer is the origin of an error, yet {inputs} far apart", inputs=inputs)
        yield (
            tr(
                "  updates of the parameters make rounding grow from step to step, which hides where an "
                "error begins: compare the first step, where both have the same weights"
            )
        )
        if comparison.growth:
            yield tr("  the error grows most at {growth}", growth=comparison.growth)
    elif comparison.damage:
        yield tr(
            "CONSISTENT as far as it goes, but INCOMPLETE: a dump is not whole; of what it lacks nothing can be told"
        )
        yield from _differing_lines(comparison)
    elif comparison.ends:
        yield tr(
            "CONSISTENT as far as it goes, but INCOMPLETE: one side ends early; of what it lacks nothing can be told"
        )
        yield from _differing_lines(comparison)
        yield (
            tr(
                "  an exception may have ended its step; where calls were chosen (scope, list, data_mode), "
                "choose the same on both sides"
            )
        )
    elif all(unmatched_modules(comparison.pairs)):
        yield (
            tr(
                "CONSISTENT as far as it goes, but INCOMPLETE: modules without a counterpart were not "
                "compared; map them first"
            )
        )
        yield from _differing_lines(comparison)
    elif comparison.verdict == Verdict.INCOMPLETE:
        yield tr("CONSISTENT as far as it goes, but INCOMPLETE: more values have no counterpart than were compared")
        yield from _differing_lines(comparison)
        yield tr("  {way_to_more}", way_to_more=_way_to_more(outcome))
    else:
        lines = list(_differing_lines(comparison))
        larger = larger_side(comparison.pairs)
        in_what = tr(" in what was compared") if larger else ""
        yield tr(
            "CONSISTENT{in_what}: {which}",
            in_what=in_what,
            which=tr("no layer is the origin of an error") if lines else _NOTHING_DIFFERS,
        )
        yield from lines
        if larger:
            side, alone = larger
            yield tr(
                "  {alone} values of the {side} have no counterpart, more than were compared: they are not judged",
                alone=alone,
                side=tr(side),
            )


def _divergent_lines(outcome: Outcome, chosen: str | None) -> Iterator[str]:
    """Where the error begins, and the way to all that is known of it."""
    comparison = outcome.comparison
    first, *others = comparison.origins
    yield tr("DIVERGENT: the error begins {in_stage}at", in_stage=IN_STAGE[first.stage])
    yield from _origin_lines(first, {pair.target.name: pair for pair in comparison.pairs if pair.target is not None})
    yield from _others_lines(tr("perhaps also at"), others)
    unnamed = chosen == "" or (chosen is None and outcome.title)
    where = tr(", -tp and -gp being those of this rank and step") if unnamed else ""
    choice = f"{chosen} " if chosen else ""
    yield tr(
        "all that is known of it: the same command with {choice}--node {target}{where}",
        choice=choice,
        target=quote(first.target),
        where=where,
    )


def _others_lines(beginning: str, origins: Sequence[Origin]) -> Iterator[str]:
    """A line for each of the next origins: the first may explain them."""
    more = and_more(len(origins) - _TOLD, ", ")
    for number, origin in enumerate(origins[:_TOLD], 1):
        last = tr("{more}, see the summary", more=more) if more and number == _TOLD else ""
        yield tr(
            "{beginning} {target}: {reason}{last}",
            beginning=beginning,
            target=origin.target,
            reason=tr_beginning(origin.reason),
            last=last,
        )


def _differing_lines(comparison: Comparison) -> Iterator[str]:
    """How many values differ although no origin was found; nothing where none does."""
    by = Counter(row.explained_by for row in comparison.rows if row.differs)
    if not by:
        return
    names = [
        tr("{name} ({count})", name=tr(name), count=count) if len(by) > 1 else tr(name)
        for name, count in by.most_common()
        if name
    ]
    why = (
        tr("let pass by {names}", names=listed(names, 2))
        if names
        else tr("by slow drift or where ReLU, pooling and the like switch")
    )
    yield tr_count(
        "  {count} value differs by more than its dtype explains, {why}; the report colours it",
        "  {count} values differ by more than their dtype explains, {why}; the report colours them",
        by.total(),
        why=why,
    )


def _structure_lines(pairs: list[Pair], empty: list[str]) -> Iterator[str]:
    """What can be said where a dump has calls and no values: which calls stand beside each other."""
    holders = tr("the {empty} does not hold", empty=tr(empty[0])) if len(empty) < 2 else tr("neither dump holds")
    yield tr(
        "INCOMPLETE: {holders} any values (task structure records calls alone), so none were compared", holders=holders
    )
    ours = [pair.target.name for pair in pairs if pair.target is not None and pair.golden is None and _is_call(pair)]
    theirs = [pair.golden.name for pair in pairs if pair.golden is not None and pair.target is None and _is_call(pair)]
    both = sum(pair.matched for pair in pairs)
    yield (
        tr("  {both} calls are in both", both=both)
        if ours or theirs
        else tr("  the {both} calls of both are the same", both=both)
    )
    for side, names in (("target", ours), ("golden", theirs)):
        if names:
            calls = tr_count("1 call is", "{count} calls are", count=len(names))
            yield tr("  {calls} in the {side} alone: {names}", calls=calls, side=tr(side), names=listed(names, _TOLD))
    yield tr("  to find where values differ, dump both with task statistics or tensor")


def _is_call(pair: Pair) -> bool:
    entry = pair.target or pair.golden
    # Gradients of parameters are values, no calls.
    return entry is not None and (entry.parsed is None or entry.parsed.direction != PARAMETERS_GRAD)


def _way_to_more(outcome: Outcome) -> str:
    """What gives more values a counterpart."""
    if is_compiled(outcome.target) != is_compiled(outcome.golden):
        return tr(
            "a compiled graph launches other kernels than a dynamic one and pairs with it inside of "
            "Cells: dump both at level L0 to compare every Cell, or both compiled to compare every kernel"
        )
    if has_modules(outcome.comparison.pairs):
        return tr(
            "modules run on one side alone, or in other numbers: map them with -lm (alone it finds how) "
            "or -cm, try -fm for their calls"
        )
    if outcome.target.framework != outcome.golden.framework:
        return tr(
            "functions of two frameworks pair safely only inside of modules: dump both at level mix (or "
            "L0), and map renamed modules with -lm or -cm; single functions pair with -dm"
        )
    return tr(
        "try -fm where calls came to other numbers, and -dm for functions that are called otherwise on the other side"
    )


def _origin_lines(origin: Origin, pairs: dict[str, Pair]) -> Iterator[str]:
    """Its name, reason and first detail, and where it was called."""
    yield f"  {origin.target}"
    if origin.golden != origin.target:
        yield tr("    golden: {golden}", golden=origin.golden)
    yield tr("    {reason}", reason=origin.reason)
    if detail := next(iter(origin.details), "") or required_line(origin):
        yield tr("    {detail}", detail=detail)
    entry = _entry_of(origin.target, pairs)
    if entry is not None and entry.scope:
        yield tr("    kernel {scope}", scope=entry.scope)
    if place := call_site(origin, pairs):
        yield tr("    called at {place}", place=place)


def required_line(origin: Origin) -> str:
    """Return the bound under which an origin would agree, in words, where that is not much; else ""."""
    if origin.kind == OriginKind.RANDOM or origin.required_tolerance is None or origin.required_tolerance >= 1:
        return ""
    tolerance = origin.metrics.get("tolerance")
    return describe_required(origin.required_tolerance, tolerance if isinstance(tolerance, float) else None)


def _entry_of(item_name: str, pairs: dict[str, Pair]) -> Entry | None:
    name = item_name
    while name:
        if name in pairs:
            return pairs[name].target
        name = name.rpartition(".")[0]
    return None


def call_site(origin: Origin, pairs: dict[str, Pair]) -> str:
    """Return the model's line of an origin's call, or for a gradient that of the forward call; "" for none.

    ``pairs``: by the names of the target's entries.
    """
    entry = _entry_of(origin.target, pairs)
    if entry is None:
        return ""
    if not entry.stack and entry.parsed is not None and entry.parsed.direction == BACKWARD:
        forward = pairs.get(str(entry.parsed.in_direction(FORWARD)))
        entry = forward.target if forward is not None and forward.target is not None else entry
    frames = outside_frameworks(entry.stack)
    return " ".join(frames[0].split()) if frames else ""
