"""Proofs from dumps of statistics: what can be told of arguments by their figures, and by data drawn to fit them.

Both runs of an experiment are fed the same drawn data: what a setting does to the norm of the results then shows,
though the data are not those that were recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from msprobe_ms.accuracy.judging.judge import equal_values
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.experiments import own_trials
from msprobe_ms.accuracy.proof.layers import Layer, Named, layer_of
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.settings import least, rounder, with_settings
from msprobe_ms.accuracy.proof.slots import Slot, paired, slots_of, with_value
from msprobe_ms.accuracy.proof.source import Source
from msprobe_ms.accuracy.proof.trial import Trial
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.accuracy.proof.words import input_sentence, name_of, shown, title_of
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.comparison.measuring.deviation import statistic_deviation
from msprobe_ms.comparison.measuring.tolerances import Tolerances
from msprobe_ms.dump.model import Item

#: How far what was recorded may be from what drawn data show, as a share, and the smallest change that tells anything.
_SHARE, _LEAST = 0.2, 1e-5
_MOST = 300
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
    target: Call, golden: Call | None, sources: tuple[Source, Source | None], producer: Producer
) -> Proof:
    """Prove a call of an API from statistics."""
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
    return _of_tensors(target, golden, pairs, sides, producer, trials)


def module_by_statistics(
    target: Call, golden: Call | None, sources: tuple[Source, Source | None], producer: Producer
) -> Proof:
    """Prove a module that is a standard layer from statistics: which settings explain how the results differ."""
    if golden is None or sources[1] is None:
        return Proof(target.entry, None, Finding.UNDECIDED, f"cannot be decided from statistics of one side: {_MORE}")
    sides = _Sides(sources[0], sources[1])
    pairs = _pairs(target, golden, sides)
    if not any(pair.difference for pair in pairs) and (layer := layer_of(target.title)) is not None:
        recorded = _recorded_change(target, golden, sides)
        if recorded is not None and abs(recorded) > _LEAST and (found := _explained(target, golden, layer, recorded)):
            return found
    return _of_tensors(target, golden, pairs, sides, producer, [])


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
    target: Call, golden: Call, pairs: Sequence[_Pair], sides: _Sides, producer: Producer, trials: Sequence[Trial]
) -> Proof:
    """What the statistics of its tensors say of a call whose settings, as far as they are known, agree."""
    entries = target.entry, golden.entry
    differing = [pair for pair in pairs if pair.difference]
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
        sentence = f"both sides are right as far as statistics tell: what {title_of(target)} takes and gives agrees"
        return Proof(*entries, Finding.RIGHT, sentence, trials)
    sentence = f"cannot be decided from statistics: nothing of what {title_of(target)} was given shows a difference"
    return Proof(*entries, Finding.UNDECIDED, sentence, trials, (_MORE,))


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
        sentence = f"cannot be decided from statistics: {sentence}, which does not explain how far the results differ"
    return Proof(target.entry, golden.entry, finding, sentence, [*trials, trial], () if trial.agrees else (_MORE,))


def _compared(what: str, one: Call, other: Call, recorded: float | None) -> Trial:
    try:
        change = _change(one, other)
    except CannotRun as reason:
        return Trial(what, None, note=str(reason))
    if change is None or recorded is None:
        return Trial(what, None, note="the norms are not known")
    note = f"{_percent(change)}; {_percent(recorded)} was recorded"
    return Trial(what, abs(change - recorded) <= _SHARE * abs(recorded) + _LEAST, note=note)


def _percent(change: float) -> str:
    return f"{100 * math.expm1(change):+.3g} %"


def _change(one: Call, other: Call) -> float | None:
    """log of the norm of one call's results over that of the other's."""
    return _ratio(_norm(one), _norm(other))


def _norm(call: Call) -> float | None:
    outputs = [out for out in call.operation.in_double(call.arguments).outputs if isinstance(out, TypedArray)]
    return float(np.linalg.norm(outputs[0].values.astype(np.float64).ravel())) if outputs else None


def _recorded_change(target: Call, golden: Call, sides: _Sides) -> float | None:
    items = sides.target.item(target.entry, "output.0"), sides.golden.item(golden.entry, "output.0")
    norms = [item.norm if item is not None and isinstance(item.norm, (int, float)) else None for item in items]
    return _ratio(*norms)


def _ratio(one: float | None, other: float | None) -> float | None:
    if one is None or other is None or not (0 < one < math.inf and 0 < other < math.inf):
        return None
    return math.log(one / other)


def _explained(target: Call, golden: Call, layer: Layer, recorded: float) -> Proof | None:
    """The settings of one side, the other having the usual ones, with which the norms differ as was recorded."""
    for sides, sign in (((target, golden), 1.0), ((golden, target), -1.0)):
        if (found := _made_otherwise(target, layer, sign * recorded)) is None:
            continue
        usual, other, change = found
        names = [name for name in other if not equal_values(other[name], usual[name])]
        told = " and ".join(f"{'epsilon' if name == 'eps' else name} {shown(other[name])}" for name in names)
        ours = " and ".join(shown(usual[name]) for name in names)
        sentence = f"by the statistics of both, {title_of(sides[0])} was made with {told}"
        sentence += f" where {title_of(sides[1])} was with {ours}"
        note = f"{_percent(sign * change)}; {_percent(recorded)} was recorded"
        trial = Trial(f"the norm of the results with {told} in place of {ours}, on drawn data", True, note=note)
        return Proof(target.entry, golden.entry, Finding.SETTING, sentence, [trial])
    return None


def _made_otherwise(call: Call, layer: Layer, wanted: float) -> tuple[Named, Named, float] | None:
    """The usual settings, those that change the norm as wanted, and by how much they change it; None: none do."""
    shape = call.arguments.keywords["input"].values.shape
    candidates = list(islice(_of_shape(layer, call.arguments.keywords, shape), _MOST))
    if not candidates:
        return None
    usual = candidates[0]

    def change(settings: Mapping[str, object]) -> float:
        try:
            found = _change(with_settings(call, settings), with_settings(call, usual))
        except CannotRun:
            found = None
        return math.inf if found is None else found

    def error(settings: Mapping[str, object]) -> float:
        return abs(change(settings) - wanted)

    best = min(candidates[1:], key=error, default=None)
    if best is not None and error(best) <= _SHARE * abs(wanted):
        return usual, best, change(best)
    if not layer.searched:
        return None
    exponent = least(lambda power: error({**usual, layer.searched: 10.0**power}), -13.0, 1.0)
    for value in islice(rounder(10.0**exponent), 2):
        settings = {**usual, layer.searched: value}
        if error(settings) <= _SHARE * abs(wanted):
            return usual, settings, change(settings)
    return None


def _of_shape(layer: Layer, named: Mapping[str, object], shape: tuple[int, ...]) -> Iterator[Named]:
    return layer.settings(named, shape)
