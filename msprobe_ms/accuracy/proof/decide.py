"""From experiments to one sentence: which side is wrong, and by what."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.experiments import OwnTrials, Pair, Swaps, own_trials, swaps
from msprobe_ms.accuracy.proof.gradients import fed_pairs, golden_gradients, handed_on, without_parameters
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.slots import GRADIENT, Slot, agree
from msprobe_ms.accuracy.proof.trial import Place
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.accuracy.proof.words import (
    exchanged_sentence,
    fed_sentence,
    golden_title,
    input_sentence,
    name_of,
    shown,
    tensor_difference,
    title_of,
)
from msprobe_ms.dump.names import BACKWARD

_CHANGED = "an input that was changed in place before the backward pass, or a hook on a tensor, shows in the same way"
_SHARED = "a parameter that is used elsewhere as well shows in the same way"
#: Says of an argument of the target where it comes from, "" where nothing tells.
Producer = Callable[[Slot], str]


def decide(target: Call, golden: Call | None, producer: Producer, *, backward: bool = False) -> Proof:
    """Prove a call by its recorded tensors; ``backward``: where its results agree its gradients, if they are known."""
    own = own_trials(target, "target")
    if golden is None:
        return _alone(target, own)
    theirs = own_trials(golden, "golden")
    if backward and _parameters_disagree(target, own) and _parameters_disagree(golden, theirs):
        proof = decide(without_parameters(target), without_parameters(golden), producer, backward=True)
        return proof.with_notes("gradients of parameters are not judged: they are used elsewhere as well")
    trials = [*own.all, *theirs.all]
    if own.recorded.agrees is False:
        both = "the golden's call is wrong by its own reference as well" if theirs.recorded.agrees is False else ""
        proof = Proof(target.entry, golden.entry, Finding.OPERATOR, _wrong_by_itself(target, own), trials)
        shared = _SHARED if _parameters_disagree(target, own) else ""
        return proof.with_notes(both, shared, _CHANGED if _is_of_backward(own) else "")
    if golden.outputs is None or (own.recorded.agrees is None and target.outputs is None):
        reason = own.recorded.note or "the golden holds no results"
        return Proof(target.entry, golden.entry, Finding.UNDECIDED, f"cannot be decided: {reason}", trials)
    swapped = swaps(target, golden)
    trials += swapped.trials
    gradients = golden_gradients(target, golden) if backward and swapped.agrees else None
    if gradients is not None:
        swapped = swaps(target, golden, gradients)
        trials += swapped.trials
    finding, sentence, notes = _compared(target, golden, (own, theirs), swapped, producer)
    return Proof(target.entry, golden.entry, finding, sentence, trials, notes)


def _alone(target: Call, own: OwnTrials) -> Proof:
    if own.recorded.agrees is None:
        sentence, finding = f"cannot be decided: {own.recorded.note}", Finding.UNDECIDED
    elif own.recorded.agrees:
        made = f" ({_made_with(target)})" if _made_with(target) else ""
        sentence = f"{title_of(target)} is right{made}: its recorded results are what its own arguments make in float64"
        finding = Finding.RIGHT
    elif _parameters_disagree(target, own):
        sentence, finding = f"cannot be decided of one dump: {_what_is_wrong(target, own)}", Finding.UNDECIDED
        return Proof(target.entry, None, finding, sentence, own.all, (_SHARED,))
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
    what = f"{title_of(call)} is wrong by its own reference: {_what_is_wrong(call, own)}"
    if own.here is not None and own.here.agrees:
        return f"{what}, and run again here it is right: look at the device or the kernel that made the dump"
    if own.here is not None and own.here.agrees is False:
        return f"{what}, nor are those of another run here: the operator is wrong"
    return what


def _what_is_wrong(call: Call, own: OwnTrials) -> str:
    if own.recorded.worst is None or not _is_of_backward(own):
        return "its recorded results are not what its own arguments make"
    number, name = own.recorded.worst.number, name_of(_argument(call, own.recorded.worst))
    what = f"the recorded gradient of `{name}` is not what its own arguments and the gradient that arrives make"
    try:
        right = call.operation.in_double(call.arguments, call.output_gradients).gradients[number]
    except CannotRun:
        return what
    return f"{what} ({tensor_difference((call.input_gradients or ())[number], right, 'the right one')})"


def _compared(
    target: Call, golden: Call, own: tuple[OwnTrials, OwnTrials], swapped: Swaps, producer: Producer
) -> tuple[Finding, str, tuple[str, ...]]:
    theirs, beside = own[1].recorded, golden_title(golden, target)
    if swapped.agrees:
        return _both_right(target, golden, swapped, producer)
    if theirs.agrees is False:
        sentence = (
            f"{title_of(target)} is right, {beside} is wrong by its own reference: the golden's recorded results are "
            "not what its own arguments make"
        )
        return Finding.GOLDEN, sentence, ()
    needed = swapped.needed
    if needed is None and own[0].recorded.agrees and theirs.agrees:
        sentence = (
            f"{title_of(target)} and {beside} compute something different: each is right by its own reference, and fed "
            "the same values they do not agree"
        )
        return Finding.OPERATION, sentence, tuple(_differences(swapped.differing))
    if needed is None:
        return Finding.UNDECIDED, "cannot be decided: no exchange of arguments makes the results agree", ()
    if not needed:  # each alone is enough
        needed = swapped.differing[:1]
    return _blamed(target, needed, producer)


def _both_right(target: Call, golden: Call, swapped: Swaps, producer: Producer) -> tuple[Finding, str, tuple[str, ...]]:
    fed = [(own, other) for own, other in fed_pairs(target, golden) if not agree(own.value, other.value)]
    if fed:
        return _fed_otherwise(target, fed[0], producer)
    made = _made_with(target)
    sentence = (
        f"both sides are right: {title_of(target)} and {golden_title(golden, target)} give what their arguments make"
    )
    return Finding.RIGHT, f"{sentence} ({made})" if made else sentence, tuple(_differences(swapped.differing))


def _fed_otherwise(target: Call, pair: Pair, producer: Producer) -> tuple[Finding, str, tuple[str, ...]]:
    own, other = pair
    difference = tensor_difference(own.value, other.value)
    return Finding.INPUT, fed_sentence(title_of(target), difference, producer(own)), ()


def _blamed(target: Call, needed: Sequence[Pair], producer: Producer) -> tuple[Finding, str, tuple[str, ...]]:
    """The sentence on the arguments that have to be the golden's for the results to agree."""
    title = title_of(target)
    if (both := exchanged(needed)) is not None:
        return Finding.EXCHANGED, exchanged_sentence(target, *both), ()
    settings = [pair for pair in needed if not pair[0].is_tensor]
    learnt = [pair for pair in needed if pair[0].is_tensor and pair[0].is_learnt]
    flowing = [pair for pair in needed if pair[0].is_tensor and not pair[0].is_learnt]
    notes = [f"{'the' if own.place[0] == GRADIENT else 'its input'} `{name_of(own)}` differs as well: "
             f"{tensor_difference(own.value, other.value)}" for own, other in flowing]  # fmt: skip
    if settings:
        return Finding.SETTING, setting_sentence(target, settings), (*_differences(learnt), *notes)
    if learnt:
        told = "; ".join(
            f"argument `{name_of(own)}` differs: {tensor_difference(own.value, other.value)}" for own, other in learnt
        )
        fed = " and ".join(f"`{name_of(own)}`" for own, _ in learnt)
        return Finding.PARAMETER, f"{told}; with the golden's {fed}, {title} gives the golden's results", tuple(notes)
    own, other = flowing[0]
    if own.place[0] == GRADIENT:
        return _fed_otherwise(target, flowing[0], producer)
    difference = tensor_difference(own.value, other.value)
    return Finding.INPUT, input_sentence(title, name_of(own), difference, producer(own)), ()


def setting_sentence(target: Call, settings: Sequence[Pair]) -> str:
    """Say with which settings the target's call is right, and which it was made with."""
    right = " and ".join(f"{name_of(own)} {shown(other.value)}" for own, other in settings)
    wrong = " and ".join(shown(own.value) for own, _ in settings)
    return f"fed the golden inputs, {title_of(target)} is right with {right}; the dump was made with {wrong}"


def exchanged(pairs: Sequence[Pair]) -> tuple[Slot, Slot] | None:
    """Return two slots of the target that hold each the other's golden value; None where no two do."""
    for number, (one, theirs) in enumerate(pairs):
        for two, others in pairs[number + 1 :]:
            if one.is_tensor and two.is_tensor and agree(one.value, others.value) and agree(two.value, theirs.value):
                return one, two
    return None


def _differences(pairs: Sequence[Pair]) -> list[str]:
    return [
        f"`{name_of(own)}`: {tensor_difference(own.value, other.value)}"
        if own.is_tensor
        else f"`{name_of(own)}` is {shown(own.value)} here and {shown(other.value)} in the golden"
        for own, other in pairs
    ]


def _made_with(call: Call) -> str:
    """The settings of a module, as they were found; "" for a call whose record holds them."""
    if not call.is_module:
        return ""
    plain = {name: value for name, value in call.arguments.keywords.items()
             if isinstance(value, (int, float, str)) and name != "training"}  # fmt: skip
    return ", ".join(f"{'epsilon' if name == 'eps' else name} {shown(value)}" for name, value in plain.items())
