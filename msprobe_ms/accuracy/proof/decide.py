"""From experiments to one sentence: which side is wrong, and by what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.experiments import OwnTrials, Pair, Swaps, own_trials, swaps
from msprobe_ms.accuracy.proof.gradients import fed_pairs, golden_gradients, handed_on, without_parameters
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.slots import GRADIENT, Slot, agree
from msprobe_ms.accuracy.proof.stated import Effect, Setting, computes_otherwise, stated_differently, with_effect
from msprobe_ms.accuracy.proof.trial import Place
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.accuracy.proof.words import (
    RIGHT_VALUE,
    exchanged_sentence,
    fed_sentence,
    golden_title,
    hidden_sentence,
    input_sentence,
    name_of,
    near_sentence,
    parameter_sentence,
    setting_sentence,
    shown,
    tensor_difference,
    title_of,
    with_values,
)
from msprobe_ms.accuracy.repeated_tensors import whole_gradients
from msprobe_ms.dump.names import BACKWARD
from msprobe_ms.support.translation import tr

_CHANGED = tr("an input changed in place before the backward pass, or a hook on a tensor, would look the same")
_SHARED = tr("a parameter that other calls use as well would look the same")
_NOT_JUDGED = tr("the gradients of its parameters are not judged: other calls use these parameters as well")
_MEANT = {
    Effect.NONE: tr("both values mean the same"),
    Effect.HIDDEN: tr("these results do not depend on it"),
    Effect.MOVES: tr("this changes the results"),
    Effect.OTHERWISE: tr("the two frameworks mean different things by it, and the results agree all the same"),
    Effect.UNKNOWN: tr("what the target's framework makes of the golden's value is not known"),
}
#: Says of an argument of the target where it comes from, "" where nothing tells.
Producer = Callable[[Slot], str]


def decide(target: Call, golden: Call | None, producer: Producer, *, backward: bool = False) -> Proof:
    """Prove a call by its recorded tensors; ``backward``: where its results agree its gradients, if they are known."""
    own = own_trials(target, "target")
    proof = _alone(target, own) if golden is None else _beside(target, golden, own, producer, backward=backward)
    if not backward or proof.finding is not Finding.RIGHT or not own.no_gradients:
        return proof
    sentence = tr(
        "{sentence}; its gradients cannot be compared: {reason}", sentence=proof.sentence, reason=own.no_gradients
    )
    return replace(proof, finding=Finding.UNDECIDED, sentence=sentence)


def _beside(target: Call, golden: Call, own: OwnTrials, producer: Producer, *, backward: bool) -> Proof:
    theirs = own_trials(golden, "golden")
    if backward and _parameters_disagree(target, own) and _parameters_disagree(golden, theirs):
        proof = decide(without_parameters(target), without_parameters(golden), producer, backward=True)
        return proof.with_notes(_NOT_JUDGED)
    trials = [*own.all, *theirs.all]
    if own.recorded.agrees is False:
        both = tr("the golden's call is wrong as well") if theirs.recorded.agrees is False else ""
        proof = Proof(target.entry, golden.entry, Finding.OPERATOR, _wrong_by_itself(target, own), trials)
        shared = _SHARED if _parameters_disagree(target, own) else ""
        return proof.with_notes(both, shared, _CHANGED if _is_of_backward(own) else "")
    if golden.outputs is None or (own.recorded.agrees is None and target.outputs is None):
        reason = own.recorded.note or tr("the golden holds no results of this call")
        return Proof(target.entry, golden.entry, Finding.UNDECIDED, reason, trials)
    swapped = swaps(target, golden)
    trials += swapped.trials
    gradients = golden_gradients(target, golden) if backward and swapped.agrees else None
    if gradients is not None:
        swapped = swaps(target, golden, gradients)
        trials += swapped.trials
    finding, sentence, notes = _compared(target, golden, (own, theirs), swapped, producer)
    proof = Proof(target.entry, golden.entry, finding, sentence, trials, notes)
    return _beside_settings(proof, target, golden) if finding in (Finding.RIGHT, Finding.INPUT) else proof


def _beside_settings(proof: Proof, target: Call, golden: Call) -> Proof:
    """The proof of a call that is right so far, unless a setting differs: what a setting does is no rounding."""
    settings = stated_differently(target, golden)
    if moving := with_effect(settings, Effect.MOVES):
        also = [tr("apart from that: {sentence}", sentence=proof.sentence)] if proof.finding is Finding.INPUT else []
        sentence = near_sentence(target, golden, _pairs(moving), max(setting.share for setting in moving))
        proof = replace(proof, finding=Finding.SETTING, sentence=sentence, notes=(*also, *proof.notes))
    elif proof.finding is Finding.RIGHT and (hidden := with_effect(settings, Effect.HIDDEN)):
        proof = replace(proof, finding=Finding.UNDECIDED, sentence=hidden_sentence(target, golden, _pairs(hidden)))
    elif proof.finding is Finding.RIGHT and (share := computes_otherwise(target, golden)) is not None:
        sentence = tr(
            "{title} and {golden} compute different things: run in float64 with the same inputs, their results differ "
            "by {share:.3g} of their size, which is little, but more than rounding in float64",
            title=title_of(target),
            golden=golden_title(golden, target),
            share=share,
        )
        proof = replace(proof, finding=Finding.OPERATION, sentence=sentence)
    return proof.with_notes(*_notes_on(settings, proof.finding))


def _pairs(settings: Sequence[Setting]) -> list[Pair]:
    return [(setting.own, setting.other) for setting in settings]


def _notes_on(settings: Sequence[Setting], finding: Finding) -> list[str]:
    """What is to be known of settings that differ and are not what the sentence is about."""
    said = {Finding.SETTING: Effect.MOVES, Finding.UNDECIDED: Effect.HIDDEN}.get(finding)
    return [
        tr("{difference}; {meant}", difference=difference, meant=_MEANT[setting.effect])
        for setting in settings
        if setting.effect is not said
        for difference in _differences(_pairs([setting]))
    ]


def _alone(target: Call, own: OwnTrials) -> Proof:
    if own.recorded.agrees is None:
        sentence, finding = own.recorded.note, Finding.UNDECIDED
    elif own.recorded.agrees:
        right = tr(
            "{title} is right: its recorded results are what float64 gives for its recorded arguments",
            title=title_of(target),
        )
        sentence, finding = _with_settings(right, target), Finding.RIGHT
    elif _parameters_disagree(target, own):
        sentence = tr("cannot be decided from one dump: {what}", what=_what_is_wrong(target, own))
        return Proof(target.entry, None, Finding.UNDECIDED, sentence, own.all, (_SHARED,))
    else:
        sentence, finding = _wrong_by_itself(target, own), Finding.OPERATOR
    return Proof(target.entry, None, finding, sentence, own.all)


def _is_of_backward(own: OwnTrials) -> bool:
    return own.recorded.worst is not None and own.recorded.worst.direction == BACKWARD


def _parameters_disagree(call: Call, own: OwnTrials) -> bool:
    """Whether what is wrong is the gradient of a module's parameter, which others may use as well."""
    wrong = own.recorded.worst if own.recorded.agrees is False else None
    return call.is_module and wrong is not None and wrong.direction == BACKWARD and _argument(call, wrong).is_learnt


def _argument(call: Call, place: Place) -> Slot:
    return handed_on(call)[place.number]


def _wrong_by_itself(call: Call, own: OwnTrials) -> str:
    what = tr("{title} is wrong: {what}", title=title_of(call), what=_what_is_wrong(call, own))
    if own.here is None or own.here.agrees is None:
        return what
    if own.here.agrees:
        return tr("{what}. Run again here, it is right: look at the device or the kernel that made the dump", what=what)
    return tr("{what}. Run again here, it is wrong too: look at this operator", what=what)


def _what_is_wrong(call: Call, own: OwnTrials) -> str:
    if own.recorded.worst is None or not _is_of_backward(own):
        return tr("its recorded results are not what float64 gives for its recorded arguments")
    number, name = own.recorded.worst.number, name_of(_argument(call, own.recorded.worst))
    what = tr(
        "its recorded gradient of `{name}` is not what float64 gives for its recorded arguments and the gradient that "
        "arrives",
        name=name,
    )
    recorded = call.input_gradients or ()
    try:
        right = call.operation.in_double(call.arguments, call.output_gradients).gradients
    except CannotRun:
        return what
    whole = whole_gradients(call.arguments, right, recorded)
    difference = tensor_difference(recorded[number], whole[number], RIGHT_VALUE)
    return tr("{what} ({difference})", what=what, difference=difference)


def _compared(
    target: Call, golden: Call, own: tuple[OwnTrials, OwnTrials], swapped: Swaps, producer: Producer
) -> tuple[Finding, str, tuple[str, ...]]:
    theirs, beside = own[1].recorded, golden_title(golden, target)
    if swapped.agrees:
        return _both_right(target, golden, swapped, producer)
    if theirs.agrees is False:
        sentence = tr(
            "{title} is right; {golden} is wrong: its recorded results are not what float64 gives for its recorded "
            "arguments",
            title=title_of(target),
            golden=beside,
        )
        return Finding.GOLDEN, sentence, ()
    needed = swapped.needed
    if needed is None and own[0].recorded.agrees and theirs.agrees:
        sentence = tr(
            "{title} and {golden} compute different things: each gives what float64 gives for its own arguments, but "
            "run with the same values their results differ",
            title=title_of(target),
            golden=beside,
        )
        return Finding.OPERATION, sentence, tuple(_differences(swapped.differing))
    if needed is None:
        reason = tr(
            "even run with the golden's arguments, {title} does not give the golden's results", title=title_of(target)
        )
        return Finding.UNDECIDED, reason, ()
    if not needed:  # each alone is enough
        needed = swapped.differing[:1]
    excess = swapped.trials[0].excess if len(needed) == len(swapped.differing) else None
    return _blamed(target, golden, needed, excess, producer)


def _both_right(target: Call, golden: Call, swapped: Swaps, producer: Producer) -> tuple[Finding, str, tuple[str, ...]]:
    fed = [(own, other) for own, other in fed_pairs(target, golden) if not agree(own.value, other.value)]
    if fed:
        return _fed_otherwise(target, fed[0], producer)
    sentence = tr(
        "both sides are right: {title} and {golden} give what float64 gives for their arguments",
        title=title_of(target),
        golden=golden_title(golden, target),
    )
    notes = _differences([pair for pair in swapped.differing if pair[0].is_tensor])
    return Finding.RIGHT, _with_settings(sentence, target), tuple(notes)


def _fed_otherwise(target: Call, pair: Pair, producer: Producer) -> tuple[Finding, str, tuple[str, ...]]:
    own, other = pair
    difference = tensor_difference(own.value, other.value)
    return Finding.INPUT, fed_sentence(title_of(target), difference, producer(own)), ()


def _blamed(
    target: Call, golden: Call, needed: Sequence[Pair], excess: float | None, producer: Producer
) -> tuple[Finding, str, tuple[str, ...]]:
    """The sentence on the arguments that have to be the golden's for the results to agree."""
    title = title_of(target)
    if (both := exchanged(needed)) is not None:
        return Finding.EXCHANGED, exchanged_sentence(target, *both), ()
    settings = [pair for pair in needed if not pair[0].is_tensor]
    learnt = [pair for pair in needed if pair[0].is_tensor and pair[0].is_learnt]
    flowing = [pair for pair in needed if pair[0].is_tensor and not pair[0].is_learnt]
    notes = [_differs_as_well(own, other) for own, other in flowing]
    if settings:
        return Finding.SETTING, setting_sentence(target, golden, settings, excess), (*_differences(learnt), *notes)
    if learnt:
        return Finding.PARAMETER, parameter_sentence(title, learnt), tuple(notes)
    own, other = flowing[0]
    if own.place[0] == GRADIENT:
        return _fed_otherwise(target, flowing[0], producer)
    difference = tensor_difference(own.value, other.value)
    return Finding.INPUT, input_sentence(title, name_of(own), difference, producer(own)), ()


def _differs_as_well(own: Slot, other: Slot) -> str:
    difference = tensor_difference(own.value, other.value)
    if own.place[0] == GRADIENT:
        return tr("the gradient that arrives differs as well: {difference}", difference=difference)
    return tr("its input `{name}` differs as well: {difference}", name=name_of(own), difference=difference)


def exchanged(pairs: Sequence[Pair]) -> tuple[Slot, Slot] | None:
    """Return two slots of the target that hold each the other's golden value; None where no two do."""
    for number, (one, theirs) in enumerate(pairs):
        for two, others in pairs[number + 1 :]:
            if one.is_tensor and two.is_tensor and agree(one.value, others.value) and agree(two.value, theirs.value):
                return one, two
    return None


def _differences(pairs: Sequence[Pair]) -> list[str]:
    return [
        tr("`{name}`: {difference}", name=name_of(own), difference=tensor_difference(own.value, other.value))
        if own.is_tensor
        else tr(
            "`{name}` is {own} in the target and {other} in the golden",
            name=name_of(own),
            own=shown(own.value),
            other=shown(other.value),
        )
        for own, other in pairs
    ]


def _with_settings(sentence: str, call: Call) -> str:
    """A sentence on a module, and the settings that were found; those of other calls are in their records."""
    found = {name: value for name, value in call.arguments.keywords.items()
             if isinstance(value, (int, float, str)) and name != "training"}  # fmt: skip
    if not call.is_module or not found:
        return sentence
    return tr("{sentence} ({settings})", sentence=sentence, settings=with_values(found))
