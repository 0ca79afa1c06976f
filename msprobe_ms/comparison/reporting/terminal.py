"""Describe a verdict for the terminal, in words a person can act on."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from msprobe_ms.arrays.metrics import COSINE
from msprobe_ms.comparison.measuring.tensors import CONTRADICTS, NOT_COMPARED, NOTE
from msprobe_ms.comparison.model import Comparison, Origin, Outcome, Pair, Row
from msprobe_ms.comparison.origin.sentences import describe_required
from msprobe_ms.comparison.pairing.coverage import (
    far_apart,
    has_modules,
    larger_side,
    lone_statistics,
    said_unmatched,
    sides_without_values,
    unmatched_modules,
)
from msprobe_ms.comparison.pairing.fused_modules import compared_as_one
from msprobe_ms.comparison.pairing.kernels import is_compiled
from msprobe_ms.comparison.reporting.files import row_counts
from msprobe_ms.comparison.terms import Mode, Verdict
from msprobe_ms.dump.dialects import outside_frameworks
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, parse_entry
from msprobe_ms.support.text import listed

#: Origins and names told in full; the rest is in the report.
_TOLD = 3
_NOTHING_DIFFERS = "no value differs by more than its dtype explains"
#: Lines of a suggested mapping.
_LINES = 30
#: Entries of both dumps up to which a mapping is found unasked: it then takes less than a second.
_MOST_ENTRIES = 30_000


def verdict_lines(outcome: Outcome) -> Iterator[str]:
    """Describe what was compared, where the error begins, what has no counterpart, and where the report is."""
    comparison = outcome.comparison
    counts = row_counts(comparison)
    if outcome.title:
        yield f"{outcome.title}:"
    yield (
        f"{counts['matched']} values compared ({comparison.mode}); without a twin: "
        f"{counts['unmatched_target']} in the target, {counts['unmatched_golden']} in the golden"
    )
    if outcome.target.level != outcome.golden.level:
        yield f"the target was dumped at level {outcome.target.level}, the golden at {outcome.golden.level}"
    yield from _unread_lines(comparison)
    yield from comparison.damage
    yield from comparison.ends
    yield from _judgement_lines(outcome, paired=bool(counts["matched"]))
    yield from _fused_lines(comparison)
    yield from _statistics_lines(comparison)
    yield from _unmatched_lines(outcome)
    for file in outcome.files:
        yield f"report: {file}"


def _judgement_lines(outcome: Outcome, *, paired: bool) -> Iterator[str]:
    """DIVERGENT, INCOMPLETE or CONSISTENT, and what explains it."""
    comparison = outcome.comparison
    if empty := sides_without_values(comparison.pairs):
        yield from _structure_lines(comparison.pairs, empty)
    elif not paired and comparison.damage:
        yield "INCOMPLETE: nothing could be compared, as a dump is not whole"
    elif not paired:
        yield "DIVERGENT: nothing in the two dumps could be paired"
    elif comparison.origins:
        yield from _divergent_lines(outcome)
    elif comparison.random:
        yield "CONSISTENT up to a random operation, but INCOMPLETE: what follows it cannot be told"
        for origin in comparison.random[:_TOLD]:
            yield from _origin_lines(origin, {})
    elif far := far_apart(comparison.pairs):
        inputs = "1 input of a call lies" if far == 1 else f"{far} inputs of calls lie"
        yield f"DIVERGENT: no layer is the origin of an error, yet {inputs} far apart"
        yield (
            "  updates of the parameters make rounding grow from step to step, which hides where an error begins: "
            "compare the first step, where both have the same weights"
        )
        if comparison.growth:
            yield f"  the error grows most at {comparison.growth}"
    elif comparison.damage:
        yield "CONSISTENT as far as it goes, but INCOMPLETE: a dump is not whole; of what it lacks nothing can be told"
        yield from _differing_lines(comparison)
    elif comparison.ends:
        yield "CONSISTENT as far as it goes, but INCOMPLETE: one side ends early; of what it lacks nothing can be told"
        yield from _differing_lines(comparison)
        yield (
            "  an exception may have ended its step; where calls were chosen (scope, list, data_mode), choose the same "
            "on both sides"
        )
    elif all(unmatched_modules(comparison.pairs)):
        yield "CONSISTENT as far as it goes, but INCOMPLETE: modules without a twin were not compared; map them first"
        yield from _differing_lines(comparison)
    elif comparison.verdict == Verdict.INCOMPLETE:
        yield "CONSISTENT as far as it goes, but INCOMPLETE: more values have no twin than were compared"
        yield from _differing_lines(comparison)
        yield f"  {_way_to_more(outcome)}"
    else:
        lines = list(_differing_lines(comparison))
        larger = larger_side(comparison.pairs)
        in_what = " in what was compared" if larger else ""
        yield f"CONSISTENT{in_what}: {'no layer is the origin of an error' if lines else _NOTHING_DIFFERS}"
        yield from lines
        if larger:
            side, alone = larger
            yield f"  {alone} values of the {side} have no twin, more than were compared: of them nothing is told"


def _divergent_lines(outcome: Outcome) -> Iterator[str]:
    """Where the error begins, and the way to all that is known of it."""
    comparison = outcome.comparison
    yield "DIVERGENT: the error begins at"
    entries = {pair.target.name: pair for pair in comparison.pairs if pair.target is not None}
    for place, origin in enumerate(comparison.origins[:_TOLD]):
        if place == 1:
            yield "and perhaps also at (mend the first, then compare again)"
        yield from _origin_lines(origin, entries)
    if len(comparison.origins) > _TOLD:
        yield f"  and {len(comparison.origins) - _TOLD} further places, see the summary"
    where = ", -tp and -gp being those of this rank and step" if outcome.title else ""
    name = quote(comparison.origins[0].target)
    yield f"all that is known of one of them: the same command with --node {name}{where}"


def _differing_lines(comparison: Comparison) -> Iterator[str]:
    """How many values differ although no origin was found; nothing where none does."""
    differing = sum(row.differs for row in comparison.rows)
    if differing:
        differ = (
            "1 value differs by more than its" if differing == 1 else f"{differing} values differ by more than their"
        )
        yield (
            f"  {differ} dtype explains, by slow drift or where ReLU, pooling and the like switch; the report colours "
            f"{'it' if differing == 1 else 'them'}"
        )


def _unread_lines(comparison: Comparison) -> Iterator[str]:
    """How many tensors could not be read, or are not what was recorded, and what was compared in their place."""
    noted = [row for row in comparison.rows if row.measured and NOTE in row.measured]
    if not noted:
        return
    tensors = sum(COSINE in row.measured for row in comparison.rows if row.measured)
    for beginning, what in ((NOT_COMPARED, "could not be read"), (CONTRADICTS, "are not what dump.json says of them")):
        rows = [row for row in noted if _note(row).startswith(beginning)]
        if not rows:
            continue
        instead = sum(row.deviation is not None for row in rows)
        if instead == len(rows):
            so = "their statistics were compared instead, which tell less"
        elif instead:
            so = f"of {instead} the statistics were compared instead, of {len(rows) - instead} nothing"
        else:
            so = "nothing of them was compared"
        yield f"{len(rows)} of {tensors} tensors {what}; {so}"
        yield f"  the first: {_note(rows[0]).removeprefix(beginning)}"


def _note(row: Row) -> str:
    return str((row.measured or {})[NOTE])


def _structure_lines(pairs: list[Pair], empty: list[str]) -> Iterator[str]:
    """What can be said where a dump has calls and no values: which calls stand beside each other."""
    holders = "neither dump holds" if len(empty) > 1 else f"the {empty[0]} does not hold"
    yield f"INCOMPLETE: {holders} any values (task structure records calls alone), so none were compared"
    ours = [pair.target.name for pair in pairs if pair.target is not None and pair.golden is None and _is_call(pair)]
    theirs = [pair.golden.name for pair in pairs if pair.golden is not None and pair.target is None and _is_call(pair)]
    both = sum(pair.matched for pair in pairs)
    yield f"  {both} calls are in both" if ours or theirs else f"  the {both} calls of both are the same"
    for side, names in (("target", ours), ("golden", theirs)):
        if names:
            calls = "1 call is" if len(names) == 1 else f"{len(names)} calls are"
            yield f"  {calls} in the {side} alone: {listed(names, _TOLD)}"
    yield "  to find where values differ, dump both with task statistics or tensor"


def _is_call(pair: Pair) -> bool:
    entry = pair.target or pair.golden
    # Gradients of parameters are values, no calls.
    return entry is not None and (entry.parsed is None or entry.parsed.direction != PARAMETERS_GRAD)


def _way_to_more(outcome: Outcome) -> str:
    """What gives more values a counterpart."""
    if is_compiled(outcome.target) != is_compiled(outcome.golden):
        return (
            "a compiled graph launches other kernels than a dynamic one and pairs with it inside of Cells: dump both "
            "at level L0 to compare every Cell, or both compiled to compare every kernel"
        )
    if has_modules(outcome.comparison.pairs):
        return (
            "modules run on one side alone, or in other numbers: map them with -lm (alone it finds how) or -cm, "
            "try -fm for their calls"
        )
    if outcome.target.framework != outcome.golden.framework:
        return (
            "functions of two frameworks pair safely only inside of modules: dump both at level mix (or L0), and map "
            "renamed modules with -lm or -cm; single functions pair with -dm"
        )
    return (
        "try -fm where calls came to other numbers, and -dm for functions that are called otherwise on the other side"
    )


def _origin_lines(origin: Origin, pairs: dict[str, Pair]) -> Iterator[str]:
    yield f"  {origin.target}"
    yield f"    golden: {origin.golden}"
    yield f"    {origin.reason}"
    entry = _entry_of(origin.target, pairs)
    if entry is not None and entry.scope:
        yield f"    kernel {entry.scope}"
    if entry is not None and (place := _call_site(entry, pairs)):
        yield f"    called at {place}"
    if origin.kind != "random" and origin.required_tolerance is not None and origin.required_tolerance < 1:
        tolerance = origin.metrics.get("tolerance")
        if line := describe_required(origin.required_tolerance, tolerance if isinstance(tolerance, float) else None):
            yield f"    {line}"


def _entry_of(item_name: str, pairs: dict[str, Pair]) -> Entry | None:
    name = item_name
    while name:
        if name in pairs:
            return pairs[name].target
        name = name.rpartition(".")[0]
    return None


def _call_site(entry: Entry, pairs: dict[str, Pair]) -> str:
    """The model's line of the call, or for a gradient that of the forward call."""
    if not entry.stack and entry.parsed is not None and entry.parsed.direction == BACKWARD:
        forward = pairs.get(str(entry.parsed.in_direction(FORWARD)))
        entry = forward.target if forward is not None and forward.target is not None else entry
    frames = outside_frameworks(entry.stack)
    return " ".join(frames[0].split()) if frames else ""


def _fused_lines(comparison: Comparison) -> Iterator[str]:
    if not (fused := compared_as_one(comparison.pairs)):
        return
    yield f"fused on one side and compared as one: {listed([f'{each.target} = {each.golden}' for each in fused], 1)}"
    if lost := [name for each in fused for name in each.not_compared]:
        why = "" if comparison.mode == Mode.TENSOR else " (of the sum of gradients only real data tells)"
        count = sum(each.values for each in fused)
        yield f"  not compared are {len(lost)} of their {count} values: {listed(lost, 1)}{why}"


def _statistics_lines(comparison: Comparison) -> Iterator[str]:
    """That running statistics could not be compared, and what compares them."""
    if (lone := lone_statistics(comparison.pairs)) is None:
        return
    count = len(lone.modules)
    modules = f"module {lone.modules[0]}" if count == 1 else f"{count} modules, the first {lone.modules[0]},"
    yield (
        f"not compared: {', '.join(lone.names)} of {modules} in the {lone.holder}, as the {lone.other} recorded no "
        "running statistics (buffers are no parameters); msprobe compare_weights of both checkpoints compares them"
    )


def _unmatched_lines(outcome: Outcome) -> Iterator[str]:
    ours, theirs = unmatched_modules(outcome.comparison.pairs)
    if said := said_unmatched(outcome.comparison.pairs):
        yield f"not compared, as the mapping says they have no twin: {listed(said, _TOLD)}"
    for side, names in (("target", ours), ("golden", theirs)):
        if names:
            yield f"modules only in the {side}: {listed(names, _TOLD)}"
    if ours and theirs:
        if len(outcome.target.entries) + len(outcome.golden.entries) > _MOST_ENTRIES:
            yield "try -lm without a file: it finds out which module is which"
            return
        alone = [
            {(parsed.name, parsed.class_name) for name in side if (parsed := parse_entry(name))}
            for side in (ours, theirs)
        ]
        from msprobe_ms.comparison.pairing.automatic import align_modules  # here, as few comparisons need it

        if lines := align_modules(outcome.target, outcome.golden).lines_for(*alone):
            yield "a layer mapping that may pair them (-lm without a file finds and uses it; check it):"
            yield from (f"  {line}" for line in lines[:_LINES])
            if len(lines) > _LINES:
                yield f"  and {len(lines) - _LINES} more lines"
