"""Describe a verdict for the terminal, in words a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import join, quote

from msprobe_ms.comparison.model import Comparison, Origin, OriginKind, Outcome, Pair
from msprobe_ms.comparison.origin.sentences import describe_excess
from msprobe_ms.comparison.pairing.coverage import (
    anything_compared,
    has_modules,
    larger_side,
    sides_without_values,
    unmatched_modules,
)
from msprobe_ms.comparison.pairing.kernels import is_compiled
from msprobe_ms.comparison.reporting.facts import fact_lines, report_line
from msprobe_ms.comparison.reporting.reasons import differing_lines, most_let_pass, withdrawn_lines
from msprobe_ms.comparison.terms import Stage, Verdict
from msprobe_ms.dump.dialects import outside_frameworks
from msprobe_ms.dump.model import Dump, Entry, ancestors
from msprobe_ms.dump.names import BACKWARD, DEBUG, FORWARD, PARAMETERS_GRAD, beginnings, is_update
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
#: Verdicts as they begin a line.
HEADS = {
    Verdict.CONSISTENT: tr("CONSISTENT"),
    Verdict.DIVERGENT: tr("DIVERGENT"),
    Verdict.INCOMPLETE: tr("INCOMPLETE"),
    Verdict.FAILED: tr("FAILED"),
    Verdict.UNJUDGED: "",
}
#: Kinds of origins whose call can be run alone.
_PROVABLE = (OriginKind.COMPUTATION, OriginKind.PARAMETER, OriginKind.PRECISION)


def verdict_lines(outcome: Outcome, command: Sequence[str] = ()) -> Iterator[str]:
    """Describe the verdict and where the error begins, what was compared and could not be, and where the report is.

    ``command``: the words of the command that compares these two dumps alone; none where no command does.
    """
    title = tr("{title}: ", title=outcome.title) if outcome.title else ""
    for line in judgement_lines(outcome, command):
        yield title + line
        title = ""
    yield from fact_lines(outcome)
    if outcome.files:
        yield report_line(outcome.files)
        summary = next((file for file in outcome.files if file.name.startswith("compare_summary")), None)
        if summary is not None and can_be_proved(outcome):
            yield proof_line(summary)


def can_be_proved(outcome: Outcome) -> bool:
    """Return whether the call that the error begins at can be run alone."""
    origin = next(iter(outcome.comparison.origins), None)
    return origin is not None and is_provable(origin, outcome.target)


def proof_line(summary: Path) -> str:
    """Return how to run the call alone that this summary says the error begins at."""
    return tr("next, to see which side is wrong and why: msprobe prove {summary}", summary=quote(str(summary)))


def is_provable(origin: Origin, target: Dump) -> bool:
    """Return whether the call of an origin in ``target`` can be run alone, or calls inside of it can.

    A module with others inside is no layer of its own: only the APIs inside of it can be run.
    """
    entries = target.entries
    name = next((each for each in (origin.target, *beginnings(origin.target)) if each in entries), None)
    parsed = entries[name].parsed if name is not None else None
    if name is None or parsed is None or parsed.direction == DEBUG or is_update(parsed) or origin.kind not in _PROVABLE:
        return False
    if not parsed.is_module:
        return True
    call = str(parsed.in_direction(FORWARD))
    inside = [each.parsed for each in entries.values() if call in ancestors(entries, each.name)]
    return not inside or any(each is not None and not each.is_module for each in inside)


def judgement_lines(outcome: Outcome, command: Sequence[str] = ()) -> Iterator[str]:
    """Say DIVERGENT, INCOMPLETE or CONSISTENT, and what explains it; ``command`` as in ``verdict_lines``."""
    comparison = outcome.comparison
    paired = anything_compared(comparison.pairs)
    if empty := sides_without_values(comparison.pairs):
        yield from _structure_lines(comparison.pairs, empty)
    elif not paired:
        yield from _unpaired_lines(comparison)
    elif comparison.origins:
        yield from _divergent_lines(outcome, command)
    elif comparison.random:
        yield tr("INCOMPLETE: values agree up to a random operation; what follows it cannot be judged")
        first, *others = comparison.random
        yield from _origin_lines(first, {})
        yield from _others_lines(tr("another random operation is"), others)
    elif comparison.far_apart:
        yield from _far_apart_lines(comparison)
    elif incomplete := _incomplete(outcome):
        head, hint = incomplete
        yield head
        yield from differing_lines(comparison.rows)
        if hint:
            yield tr("  {hint}", hint=hint)
    elif comparison.inherits is not None:
        yield tr("DIVERGENT: inherits the error of step {step}; none begins in this one", step=comparison.inherits)
        yield from differing_lines(comparison.rows)
    else:
        yield from _consistent_lines(comparison)


def _how_near(differ: bool, withdrawn: bool) -> str:
    """How near consistent values are: some beyond the tolerance of their dtype, or some that are not judged."""
    if differ:
        return tr("rounding errors, some of which add up, explain all differences")
    if withdrawn:
        return tr("all values that are judged agree within the rounding error of their dtypes")
    return tr("all values agree within the rounding error of their dtypes")


def _unpaired_lines(comparison: Comparison) -> Iterator[str]:
    """That no call could be paired, and what the losses show, if there are some."""
    if comparison.origins:
        yield tr("DIVERGENT: the losses differ, but no calls could be paired: it is not known where the error begins")
        yield from _origin_lines(comparison.origins[0], {})
    elif comparison.damage:
        yield tr("INCOMPLETE: nothing could be compared, as a dump is not whole")
    elif comparison.verdict == Verdict.DIVERGENT:
        yield tr("DIVERGENT: nothing in the two dumps could be paired")
    elif any(row.matched for row in comparison.rows):
        yield tr("INCOMPLETE: the loss agrees, but nothing else was compared: no modules could be paired")
    else:
        yield tr("INCOMPLETE: nothing was compared: no modules could be paired")


def _far_apart_lines(comparison: Comparison) -> Iterator[str]:
    """That values are far apart, as they are after updates, though nothing shows where the error begins."""
    far = comparison.far_apart
    inputs = tr_count("1 input of a call lies", "{count} inputs of calls lie", count=far)
    yield tr("DIVERGENT: {inputs} far apart, but no single layer is the origin", inputs=inputs)
    yield (
        tr(
            "  rounding errors grow with each update of the parameters and hide where the error "
            "begins: compare the first step, in which both sides have the same weights"
        )
    )
    if comparison.growth:
        yield tr("  the error grows most at {growth}", growth=comparison.growth)


def _incomplete(outcome: Outcome) -> tuple[str, str] | None:
    """What was not compared, though all else agrees, and what to do about it, or ""; None where nothing is lacking."""
    comparison = outcome.comparison
    if comparison.damage:
        return tr("INCOMPLETE: what was compared agrees, but a dump is not whole: what it lacks was not compared"), ""
    if comparison.ends:
        return (
            tr(
                "INCOMPLETE: what was compared agrees, but one side ends before the other: "
                "what it lacks was not compared"
            ),
            tr(
                "an exception may have ended its step; where calls were chosen (scope, list, data_mode), "
                "choose the same on both sides"
            ),
        )
    if all(unmatched_modules(comparison.pairs)):
        head = tr(
            "INCOMPLETE: what was compared agrees, but both sides have unpaired modules, which were not compared: "
            "pair them first"
        )
        return head, ""
    if comparison.unread:
        head = tr_count(
            "INCOMPLETE: what was compared agrees, but 1 value that was recorded could not be compared",
            "INCOMPLETE: what was compared agrees, but {count} values that were recorded could not be compared",
            count=len(comparison.unread),
        )
        return head, ""
    if comparison.verdict == Verdict.INCOMPLETE:
        head = tr("INCOMPLETE: what was compared agrees, but more values have no counterpart than were compared")
        return head, _way_to_more(outcome)
    return None


def _consistent_lines(comparison: Comparison) -> Iterator[str]:
    """That nothing differs by more than rounding error explains, and what hides in that once there were updates."""
    lines, withdrawn = list(differing_lines(comparison.rows)), list(withdrawn_lines(comparison.rows))
    larger = larger_side(comparison.pairs)
    in_what = tr(" in what was compared") if larger else ""
    if lines and comparison.updated:
        yield tr("CONSISTENT{in_what}, as far as a step after updates of the parameters shows", in_what=in_what)
    else:
        yield tr("CONSISTENT{in_what}: {which}", in_what=in_what, which=_how_near(bool(lines), bool(withdrawn)))
    yield from lines
    yield from withdrawn
    if lines and comparison.updated:
        largest, name = most_let_pass(comparison.rows)
        if largest:
            yield tr(
                "  an error of this step may hide in them, too, if it is no larger than {largest:.2g} of the size of "
                "{name}",
                largest=largest,
                name=name,
            )
        earlier = comparison.earlier
        yield (
            tr("  an error of an earlier step may hide in them: give -tp and -gp the folders that hold all steps")
            if earlier
            else tr("  an error of an earlier step may hide in them: record and compare the first step too")
        )
    if larger:
        side, alone = larger
        yield tr(
            "  {alone} values of the {side} have no counterpart, more than were compared: they are not judged",
            alone=alone,
            side=tr(side),
        )


def _divergent_lines(outcome: Outcome, command: Sequence[str]) -> Iterator[str]:
    """Where the error begins, and the command that says more of it."""
    comparison = outcome.comparison
    first, *others = comparison.origins
    yield tr("DIVERGENT: the error begins {in_stage}at", in_stage=IN_STAGE[first.stage])
    yield from _origin_lines(first, {pair.target.name: pair for pair in comparison.pairs if pair.target is not None})
    yield from _others_lines(tr("perhaps also at"), others)
    if command:
        yield tr("details of this call: {command}", command=join([*command, "--node", first.target]))


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
            "kernels of a compiled graph pair with those of a dynamic graph only inside Cells: dump "
            "both at level L0 to compare every Cell, or both compiled to compare every kernel"
        )
    if has_modules(outcome.comparison.pairs):
        return tr(
            "some modules ran on one side only, or a different number of times: map them with -lm "
            "(without a file it finds the mapping) or -cm, or try -fm for their calls"
        )
    if outcome.target.framework != outcome.golden.framework:
        return tr(
            "functions of two frameworks pair safely only inside of modules: dump both at level mix (or "
            "L0), and map renamed modules with -lm or -cm; single functions pair with -dm"
        )
    return tr("if calls have other numbers on the two sides, try -fm; if functions have other names, map them with -dm")


def _origin_lines(origin: Origin, pairs: dict[str, Pair]) -> Iterator[str]:
    """Its name, reason and first detail, and where it was called."""
    yield f"  {origin.target}"
    if origin.golden and origin.golden != origin.target:
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
    """Say how far beyond its tolerance an origin is, where that is not much; else ""."""
    # Of settings and random numbers none would do.
    none_would = origin.kind in (OriginKind.RANDOM, OriginKind.UPDATE)
    if none_would or origin.required_tolerance is None or origin.required_tolerance >= 1:
        return ""
    tolerance = origin.metrics.get("tolerance")
    return describe_excess(origin.required_tolerance, tolerance if isinstance(tolerance, float) else None)


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
