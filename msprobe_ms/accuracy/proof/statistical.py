"""Proofs from dumps of statistics: what can be told of arguments by their figures, and by data drawn to fit them.

Both runs of an experiment are fed the same drawn data: what a setting does to the norm of the results then shows,
though the data are not those that were recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from msprobe_ms.accuracy.judging.judge import equal_values
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.drawn_settings import SHARE, Explanation, explained, log_ratio, norm_change, percent
from msprobe_ms.accuracy.proof.experiments import own_trials
from msprobe_ms.accuracy.proof.layers import Layer
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.slots import GRADIENT, Slot, paired, slots_of, with_value
from msprobe_ms.accuracy.proof.source import Source
from msprobe_ms.accuracy.proof.trial import Trial
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.accuracy.proof.words import exchanged_sentence, fed_sentence, input_sentence, name_of, shown, title_of
from msprobe_ms.comparison.measuring.deviation import statistic_deviation
from msprobe_ms.comparison.measuring.tolerances import Tolerances
from msprobe_ms.dump.model import Item

#: The smallest change of a norm that tells anything; the share of what was recorded below which it explains nothing.
_LEAST, _HARDLY = 1e-5, 0.02
_MORE = "dump task tensor on both sides to tell more"
Producer = Callable[[Slot], str]


class _Pair(NamedTuple):
    """An argument of both sides; ``difference`` is "" where they agree, else how they differ in words."""

    own: Slot
    other: Slot
    difference: str


class _Sides(NamedTuple):
    target: Source
    golden: Source


def decide_by_statistics(
    target: Call,
    golden: Call | None,
    sources: tuple[Source, Source | None],
    producer: Producer,
    *,
    backward: bool = False,
) -> Proof:
    """Prove a call of an API from statistics; ``backward``: where its results agree, its gradients."""
    trials = own_trials(target, "target").all[1:]
    here = trials[0] if trials else None
    if here is not None and here.agrees is False:
        sentence = f"{title_of(target)} is wrong: run here on drawn data, it is not what float64 gives"
        return Proof(target.entry, None if golden is None else golden.entry, Finding.OPERATOR, sentence, trials)
    if golden is None or sources[1] is None:
        if here is None or here.agrees is None:
            reason = here.note if here is not None else "it cannot be run"
            return Proof(target.entry, None, Finding.UNDECIDED, f"cannot be decided: {reason}", trials)
        sentence = f"{title_of(target)} is right here, on data drawn to the recorded statistics"
        return Proof(target.entry, None, Finding.RIGHT, sentence, trials, (f"its recorded results: {_MORE}",))
    sides = _Sides(sources[0], sources[1])
    pairs = _pairs(target, golden, sides)
    if settings := [pair for pair in pairs if pair.difference and not pair.own.is_tensor]:
        return _of_settings(target, golden, settings, sides, trials)
    return _of_tensors(target, golden, pairs, sides, producer, trials, backward=backward)


def module_by_statistics(
    target: Call,
    golden: Call | None,
    sources: tuple[Source, Source | None],
    producer: Producer,
    layer: Layer,
    drawn: Iterable[Call] = (),
    *,
    backward: bool = False,
) -> Proof:
    """Prove a module that is a standard layer from statistics: which settings explain how the results differ.

    ``drawn``: the same call with other numbers drawn
    """
    if golden is None or sources[1] is None:
        return Proof(target.entry, None, Finding.UNDECIDED, f"cannot be decided from statistics of one side: {_MORE}")
    sides = _Sides(sources[0], sources[1])
    pairs = _pairs(target, golden, sides)
    if not any(pair.difference for pair in pairs):
        recorded = _recorded_change(target, golden, sides)
        if recorded is not None and abs(recorded) > _LEAST:
            calls = [target, *drawn]
            for (ours, theirs), sign in (((target, golden), 1.0), ((golden, target), -1.0)):
                if (found := explained(calls, layer, sign * recorded)) is not None:
                    return _of_module(target.entry, golden.entry, (title_of(ours), title_of(theirs)), found)
    return _of_tensors(target, golden, pairs, sides, producer, [], backward=backward)


def _of_module(target: str, golden: str, titles: tuple[str, str], found: Explanation) -> Proof:
    sentence = (
        f"by the statistics of both, {titles[0]} was made with {found.told} where {titles[1]} was with {found.usual}"
    )
    what = f"the norm of the results with {found.told} in place of {found.usual}, on drawn data"
    trial = Trial(what, True, note=f"{percent(found.change)}; {percent(found.recorded)} was recorded")
    return Proof(target, golden, Finding.SETTING, sentence, [trial], (f"statistics tell settings roughly: {_MORE}",))


# -- arguments -----------------------------------------------------------------------------------------------------


def _pairs(target: Call, golden: Call, sides: _Sides) -> list[_Pair]:
    return [
        _Pair(own, other, _apart(target, golden, own, other, sides) if own.is_tensor else _plain(own, other))
        for own, other in paired(slots_of(target), slots_of(golden))
    ]


def _plain(own: Slot, other: Slot) -> str:
    same = equal_values(own.value, other.value)
    return "" if same else f"{shown(own.value)} here and {shown(other.value)} in the golden"


def _apart(target: Call, golden: Call, own: Slot, other: Slot, sides: _Sides) -> str:
    """How two tensors differ by their statistics; "" where they agree, or nothing was recorded of one."""
    items = _item(target, own, sides.target), _item(golden, other, sides.golden)
    if items[0] is None or items[1] is None:
        return ""
    return _item_difference(*items)


def _item(call: Call, slot: Slot, source: Source) -> Item | None:
    suffix = call.items.get(f"{slot.place[0]}.{slot.place[1]}")
    return None if suffix is None else source.item(call.entry, suffix)


def _item_difference(one: Item | None, other: Item | None) -> str:
    if one is None or other is None:
        return ""
    if one.shape != other.shape:
        return f"its shape is {one.shape} beside {other.shape}"
    apart = statistic_deviation(one, other)
    most = Tolerances().bound(one.dtype, other.dtype, exact=False, same_framework=False, gradient=False)
    if apart is None or apart <= most:
        return ""
    return f"its statistics are {apart:.3g} apart, {most:.3g} are of rounding"


def _of_tensors(
    target: Call,
    golden: Call,
    pairs: Sequence[_Pair],
    sides: _Sides,
    producer: Producer,
    trials: Sequence[Trial],
    *,
    backward: bool,
) -> Proof:
    """What the statistics of its tensors say of a call whose settings, as far as they are known, agree."""
    entries = target.entry, golden.entry
    differing = [pair for pair in pairs if pair.difference]
    for one, two in combinations(differing, 2):
        if _are_exchanged(target, golden, one, two, sides):
            return Proof(*entries, Finding.EXCHANGED, exchanged_sentence(target, one.own, two.own), trials)
    if learnt := [pair for pair in differing if pair.own.is_learnt]:
        told = "; ".join(f"`{name_of(pair.own)}` differs: {pair.difference}" for pair in learnt)
        sentence = f"{title_of(target)} has other parameters than the golden's: {told}"
        return Proof(*entries, Finding.PARAMETER, sentence, trials)
    if differing:
        pair = differing[0]
        sentence = input_sentence(title_of(target), name_of(pair.own), pair.difference, producer(pair.own))
        return Proof(*entries, Finding.INPUT, sentence, trials)
    outputs = [source.item(entry, "output.0") for source, entry in zip(sides, entries, strict=True)]
    if None not in outputs and not _item_difference(*outputs):
        if backward:
            return _of_gradients(target, golden, sides, producer, trials)
        sentence = f"both sides are right as far as statistics tell: what {title_of(target)} takes and gives agrees"
        return Proof(*entries, Finding.RIGHT, sentence, trials)
    sentence = f"cannot be decided from statistics: nothing of what {title_of(target)} was given shows a difference"
    return Proof(*entries, Finding.UNDECIDED, sentence, trials, (_MORE,))


def _of_gradients(target: Call, golden: Call, sides: _Sides, producer: Producer, trials: Sequence[Trial]) -> Proof:
    """What the statistics of its gradients say of a call whose results agree."""
    entries = target.entry, golden.entry
    fed = [source.gradients(entry)[0] for source, entry in zip(sides, entries, strict=True)]
    for number, (own, other) in enumerate(zip(*(each.values() for each in fed), strict=False)):
        if difference := _item_difference(own, other):
            made_by = producer(Slot("gradient fed", (GRADIENT, number), None))
            return Proof(*entries, Finding.INPUT, fed_sentence(title_of(target), difference, made_by), trials)
    if not all(fed):
        sentence = "cannot be decided: one of the dumps holds no gradient that arrives at it"
        return Proof(*entries, Finding.UNDECIDED, sentence, trials)
    handed = [source.gradients(entry)[1] for source, entry in zip(sides, entries, strict=True)]
    for name in (name for name in handed[0] if name in handed[1]):
        if difference := _item_difference(handed[0][name], handed[1][name]):
            sentence = f"cannot be decided from statistics: fed alike, its gradient of `{name}` differs ({difference})"
            return Proof(*entries, Finding.UNDECIDED, sentence, trials, (_MORE,))
    sentence = f"both sides are right as far as statistics tell: results and gradients of {title_of(target)} agree"
    return Proof(*entries, Finding.RIGHT, sentence, trials)


def _are_exchanged(target: Call, golden: Call, one: _Pair, two: _Pair, sides: _Sides) -> bool:
    crossed = (one.own, two.other), (two.own, one.other)
    return all(
        own.is_tensor and _known(target, own, sides.target) and not _apart(target, golden, own, other, sides)
        for own, other in crossed
    )


def _known(call: Call, slot: Slot, source: Source) -> bool:
    return _item(call, slot, source) is not None


# -- settings ------------------------------------------------------------------------------------------------------


def _of_settings(target: Call, golden: Call, pairs: Sequence[_Pair], sides: _Sides, trials: Sequence[Trial]) -> Proof:
    """Whether arguments that differ explain how far the results are apart."""
    told = " and ".join(f"`{name_of(pair.own)}` is {pair.difference}" for pair in pairs)
    other = target
    for pair in pairs:
        other = with_value(other, pair.own, pair.other.value)
    recorded = _recorded_change(target, golden, sides)
    names = ", ".join(name_of(pair.own) for pair in pairs)
    trial = _compared(f"the norm of the results as {names} changes it, on drawn data", target, other, recorded)
    sentence = f"{title_of(target)} was called otherwise than the golden: {told}"
    finding = Finding.SETTING
    if trial.agrees is False:
        finding = Finding.UNDECIDED
        sentence = f"cannot be decided from statistics: {sentence}, which changes the results hardly"
    return Proof(target.entry, golden.entry, finding, sentence, [*trials, trial], () if trial.agrees else (_MORE,))


def _compared(what: str, one: Call, other: Call, recorded: float | None) -> Trial:
    try:
        change = norm_change(one, other)
    except CannotRun as reason:
        return Trial(what, None, note=str(reason))
    if change is None or recorded is None:
        return Trial(what, None, note="the norms are not known")
    note = f"{percent(change)}; {percent(recorded)} was recorded"
    if abs(change - recorded) <= SHARE * abs(recorded) + _LEAST:
        return Trial(what, True, note=note)
    # Other data, another size; what hardly changes anything explains nothing.
    return Trial(what, False if abs(change) < _HARDLY * abs(recorded) else None, note=note)


def _recorded_change(target: Call, golden: Call, sides: _Sides) -> float | None:
    items = sides.target.item(target.entry, "output.0"), sides.golden.item(golden.entry, "output.0")
    norms = [item.norm if item is not None and isinstance(item.norm, (int, float)) else None for item in items]
    return log_ratio(*norms)
