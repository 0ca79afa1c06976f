"""Proofs from dumps of statistics: what can be told of arguments by their figures, and by data drawn to fit them.

Both runs of an experiment are fed the same drawn data: what a setting does to the norm of the results then shows,
though the data are not those that were recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.drawn_settings import SHARE, Explanation, explained, log_ratio, norm_change, percent
from msprobe_ms.accuracy.proof.experiments import own_trials
from msprobe_ms.accuracy.proof.layers import Layer
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.slots import GRADIENT, Slot, paired, slots_of, with_value
from msprobe_ms.accuracy.proof.source import Source
from msprobe_ms.accuracy.proof.stated import Effect, stated_differently
from msprobe_ms.accuracy.proof.trial import Trial
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.accuracy.proof.words import (
    GOLDEN_VALUE,
    exchanged_sentence,
    fed_sentence,
    golden_title,
    hidden_sentence,
    input_sentence,
    name_of,
    stated,
    title_of,
)
from msprobe_ms.arrays.dtypes import coarser
from msprobe_ms.comparison.measuring.deviation import statistic_deviation
from msprobe_ms.comparison.measuring.tolerances import Tolerances
from msprobe_ms.comparison.statistics import element_count
from msprobe_ms.dump.model import Item
from msprobe_ms.support.translation import tr, tr_join

#: The change of a norm that rounding to float32 makes of any number of elements; how many times more tells a setting.
_LEAST, _CLEAR = 2.5e-7, 8
#: The share of what was recorded below which a change explains nothing of it.
_HARDLY = 0.02
_MIX = tr("dump at level mix, which records the settings")
_EARLIER = tr(
    "the call itself may well be right: look at the checkpoint (first step), or at the optimizer in the step before, "
    'which "optimizer": true records'
)
_MORE = tr("to know more, dump both sides with task tensor")
_ROUGHLY = tr('statistics give settings only roughly; record both sides with task "tensor" for the exact value')
_NOT_CHECKED = tr("statistics cannot tell whether its recorded results are right: dump with task tensor")
Producer = Callable[[Slot], str]


class _Pair(NamedTuple):
    """An argument of both sides; ``difference`` is "" where they agree, else how they differ in words."""

    own: Slot
    other: Slot
    difference: str


class Sides(NamedTuple):
    """Both dumps."""

    target: Source
    golden: Source

    def apart(self, one: Item | None, other: Item | None) -> str:
        """How two tensors differ by their statistics; "" where by no more than compare allows."""
        if one is None or other is None:
            return ""
        if one.shape != other.shape:
            return tr("its shape is {one}, {whose} has {other}", one=one.shape, other=other.shape, whose=GOLDEN_VALUE)
        apart = statistic_deviation(one, other)
        same = self.target.dump.framework == self.golden.dump.framework
        most = Tolerances().bound(one.dtype, other.dtype, exact=False, same_framework=same, gradient=False)
        if apart is None or apart <= most:
            return ""
        return tr(
            "it differs by {apart:.3g} of its size; rounding explains at most {most:.3g}",
            apart=apart,
            most=most,
        )

    def results_apart(self, target: str, golden: str) -> str:
        """How the first result of two entries differs; "" where its statistics agree."""
        items = zip((self.target, self.golden), (target, golden), strict=True)
        return self.apart(*(source.item(entry, "output.0") for source, entry in items))


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
        sentence = tr(
            "{title} is wrong: run here on random data with the recorded statistics, it gives something else than "
            "float64",
            title=title_of(target),
        )
        return Proof(target.entry, None if golden is None else golden.entry, Finding.OPERATOR, sentence, trials)
    if golden is None or sources[1] is None:
        if here is None or here.agrees is None:
            reason = here.note if here is not None else tr("it cannot be run")
            return Proof(target.entry, None, Finding.UNDECIDED, reason, trials)
        sentence = tr(
            "{title} is right here: run on random data with the recorded statistics, it gives the same as float64",
            title=title_of(target),
        )
        return Proof(target.entry, None, Finding.RIGHT, sentence, trials, (_NOT_CHECKED,))
    sides = Sides(sources[0], sources[1])
    pairs = _pairs(target, golden, sides)
    stated_so = {setting.own.place: setting.effect for setting in stated_differently(target, golden)}
    settings = [pair for pair in pairs if pair.own.place in stated_so]
    if moving := [pair for pair in settings if stated_so[pair.own.place] not in (Effect.NONE, Effect.HIDDEN)]:
        return _of_settings(target, golden, moving, sides, trials)
    proof = _of_tensors(target, golden, pairs, sides, producer, trials, backward=backward)
    hidden = [(pair.own, pair.other) for pair in settings if stated_so[pair.own.place] is Effect.HIDDEN]
    if hidden and proof.finding is Finding.RIGHT:
        proof = replace(proof, finding=Finding.UNDECIDED, sentence=hidden_sentence(target, golden, hidden))
    return proof


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
        sentence = tr("cannot be decided from the statistics of one dump: dump with task tensor")
        return Proof(target.entry, None, Finding.UNDECIDED, sentence)
    sides = Sides(sources[0], sources[1])
    pairs = _pairs(target, golden, sides)
    recorded, noise = _recorded_change(target, golden, sides), _noise(target, golden, sides)
    shows = recorded is not None and abs(recorded) > noise and not any(pair.difference for pair in pairs)
    if recorded is not None and shows and abs(recorded) > _CLEAR * noise:
        titles, calls = (title_of(target), golden_title(golden, target)), [target, *drawn]
        found = [(titles, explained(calls, layer, recorded)), (titles[::-1], explained(calls, layer, -recorded))]
        likely = sorted(
            ((those, each) for those, each in found if each is not None), key=lambda each: not each[1].is_usual
        )
        if likely:
            return _of_module(target.entry, golden.entry, *likely[0])
    proof = _of_tensors(target, golden, pairs, sides, producer, [], backward=backward)
    if recorded is not None and shows and proof.finding is Finding.RIGHT and _has_settings(target, layer):
        reason = tr(
            "the norm of the results differs by {apart:.3g} of its size, which rounding may explain, but so may a "
            "setting of {title}",
            apart=abs(recorded),
            title=title_of(target),
        )
        return replace(proof, finding=Finding.UNDECIDED, sentence=_undecided(reason)).with_notes(_MIX)
    return proof


def _has_settings(call: Call, layer: Layer) -> bool:
    given = call.arguments.keywords
    return bool(layer.searched) or len(layer.possible(given, given["input"].values.shape)) > 1


def _noise(target: Call, golden: Call, sides: Sides) -> float:
    """By how much rounding alone sets the norms of the results apart: that of the results themselves, which averages
    out over them, and what the inputs bring along."""
    pairs = [
        (sides.target.item(target.entry, suffix), sides.golden.item(golden.entry, suffix))
        for suffix in ("output.0", target.items.get("keyword.input", ""))
    ]
    outputs, inputs = pairs
    if outputs[0] is None or outputs[1] is None:
        return math.inf
    epsilon = coarser(outputs[0].dtype, outputs[1].dtype).epsilon
    brought = _norms_apart(*inputs)
    return max(_LEAST + 4 * epsilon / math.sqrt(element_count(outputs[1]) or 1), 3 * abs(brought or 0.0))


def _of_module(target: str, golden: str, titles: tuple[str, ...], found: Explanation) -> Proof:
    sentence = tr(
        "{title} has another setting than {other}, as far as statistics tell: the results are as far apart as if "
        "it had {told} and the other had {usual}",
        title=titles[0],
        told=found.told,
        other=titles[1],
        usual=found.usual,
    )
    what = tr(
        "a trial on random data, {told} in place of {usual}",
        told=found.told,
        usual=found.usual,
    )
    trial = Trial(what, True, note=_changes(found.change, found.recorded, explains=True), explains=True)
    return Proof(target, golden, Finding.SETTING, sentence, [trial], (_ROUGHLY,))


def _changes(change: float, recorded: float, *, explains: bool) -> str:
    if explains:
        return tr(
            "the norm of the result changes by {change}, about as much as between the two dumps ({recorded}): "
            "this explains the difference",
            change=percent(change),
            recorded=percent(recorded),
        )
    return tr(
        "the norm of the result changes by {change}, between the two dumps by {recorded}: too far apart to confirm on "
        "random data that the setting is the whole difference",
        change=percent(change),
        recorded=percent(recorded),
    )


def _undecided(reason: str) -> str:
    return tr("cannot be decided from statistics: {reason}", reason=reason)


# -- arguments -----------------------------------------------------------------------------------------------------


def _pairs(target: Call, golden: Call, sides: Sides) -> list[_Pair]:
    return [
        _Pair(own, other, _apart(target, golden, own, other, sides) if own.is_tensor else "")
        for own, other in paired(slots_of(target), slots_of(golden))
    ]


def _apart(target: Call, golden: Call, own: Slot, other: Slot, sides: Sides) -> str:
    """How two tensors differ by their statistics; "" where they agree, or nothing was recorded of one."""
    items = _item(target, own, sides.target), _item(golden, other, sides.golden)
    return sides.apart(*items)


def _item(call: Call, slot: Slot, source: Source) -> Item | None:
    suffix = call.items.get(f"{slot.place[0]}.{slot.place[1]}")
    return None if suffix is None else source.item(call.entry, suffix)


def _of_tensors(
    target: Call,
    golden: Call,
    pairs: Sequence[_Pair],
    sides: Sides,
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
        differences = [
            tr("`{name}` differs: {difference}", name=name_of(pair.own), difference=pair.difference) for pair in learnt
        ]
        sentence = tr(
            "parameters of {title} differ before it runs: {differences}",
            title=title_of(target),
            differences=tr_join(tr("; "), differences),
        )
        return Proof(*entries, Finding.PARAMETER, sentence, trials, (_EARLIER,))
    if differing:
        pair = differing[0]
        sentence = input_sentence(title_of(target), name_of(pair.own), pair.difference, producer(pair.own))
        return Proof(*entries, Finding.INPUT, sentence, trials)
    outputs = [source.item(entry, "output.0") for source, entry in zip(sides, entries, strict=True)]
    if None not in outputs and not sides.apart(*outputs):
        if backward:
            return _of_gradients(target, golden, sides, producer, trials)
        sentence = tr(
            "both sides are right as far as statistics tell: inputs, parameters and results of {title} agree",
            title=title_of(target),
        )
        return Proof(*entries, Finding.RIGHT, sentence, trials)
    reason = tr("nothing that {title} was given differs from the golden's", title=title_of(target))
    return Proof(*entries, Finding.UNDECIDED, _undecided(reason), trials, (_MORE,))


def _of_gradients(target: Call, golden: Call, sides: Sides, producer: Producer, trials: Sequence[Trial]) -> Proof:
    """What the statistics of its gradients say of a call whose results agree."""
    entries = target.entry, golden.entry
    fed = [source.gradients(entry)[0] for source, entry in zip(sides, entries, strict=True)]
    for number, (own, other) in enumerate(zip(*(each.values() for each in fed), strict=False)):
        if difference := sides.apart(own, other):
            made_by = producer(Slot("incoming gradient", (GRADIENT, number), None))
            return Proof(*entries, Finding.INPUT, fed_sentence(title_of(target), difference, made_by), trials)
    if not all(fed):
        reason = tr("one of the dumps holds no gradient that arrives at {title}", title=title_of(target))
        return Proof(*entries, Finding.UNDECIDED, reason, trials)
    handed = [source.gradients(entry)[1] for source, entry in zip(sides, entries, strict=True)]
    for name in (name for name in handed[0] if name in handed[1]):
        if difference := sides.apart(handed[0][name], handed[1][name]):
            reason = tr(
                "the gradient that arrives at {title} agrees, but its gradient of `{name}` differs ({difference})",
                title=title_of(target),
                name=name,
                difference=difference,
            )
            return Proof(*entries, Finding.UNDECIDED, _undecided(reason), trials, (_MORE,))
    sentence = tr(
        "both sides are right as far as statistics tell: results and gradients of {title} agree",
        title=title_of(target),
    )
    return Proof(*entries, Finding.RIGHT, sentence, trials)


def _are_exchanged(target: Call, golden: Call, one: _Pair, two: _Pair, sides: Sides) -> bool:
    crossed = (one.own, two.other), (two.own, one.other)
    return all(
        own.is_tensor and _known(target, own, sides.target) and not _apart(target, golden, own, other, sides)
        for own, other in crossed
    )


def _known(call: Call, slot: Slot, source: Source) -> bool:
    return _item(call, slot, source) is not None


# -- settings ------------------------------------------------------------------------------------------------------


def _of_settings(target: Call, golden: Call, pairs: Sequence[_Pair], sides: Sides, trials: Sequence[Trial]) -> Proof:
    """Whether arguments that differ explain how far the results are apart."""
    both = [(pair.own, pair.other) for pair in pairs]
    told = stated(target, golden, both)
    other = target
    for own, theirs in both:
        other = with_value(other, own, theirs.value)
    recorded = _recorded_change(target, golden, sides)
    what = tr(
        "a trial on random data, the target's {names} in place of the golden's",
        names=tr_join(tr(" and "), [name_of(own) for own, _ in both]),
    )
    trial = _compared(what, target, other, recorded)
    if trial.agrees is not False:
        if trials and all(each.agrees for each in trials):
            told = tr(
                "{stated}. With its own setting {title} computes correctly here: look at the setting",
                stated=told,
                title=title_of(target),
            )
        return Proof(target.entry, golden.entry, Finding.SETTING, told, [*trials, trial], _more(trial))
    reason = tr("{stated}, but this changes the results far less than they differ", stated=told)
    return Proof(target.entry, golden.entry, Finding.UNDECIDED, _undecided(reason), [*trials, trial], _more(trial))


def _more(trial: Trial) -> tuple[str, ...]:
    return () if trial.agrees else (_MORE,)


def _compared(what: str, one: Call, other: Call, recorded: float | None) -> Trial:
    try:
        change = norm_change(one, other)
    except CannotRun as reason:
        return Trial(what, None, note=tr("{reason}", reason=reason))
    if change is None or recorded is None:
        return Trial(what, None, note=tr("the norms of the results are not known"))
    explains = abs(change - recorded) <= SHARE * abs(recorded) + _CLEAR * _LEAST
    # Other data, another size; what hardly changes anything explains nothing.
    agrees = True if explains else False if abs(change) < _HARDLY * abs(recorded) else None
    return Trial(what, agrees, note=_changes(change, recorded, explains=explains), explains=True)


def _recorded_change(target: Call, golden: Call, sides: Sides) -> float | None:
    return _norms_apart(sides.target.item(target.entry, "output.0"), sides.golden.item(golden.entry, "output.0"))


def _norms_apart(one: Item | None, other: Item | None) -> float | None:
    norms = [item.norm if item is not None and isinstance(item.norm, (int, float)) else None for item in (one, other)]
    return log_ratio(*norms)
