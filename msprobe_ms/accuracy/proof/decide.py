"""From experiments to one sentence: which side is wrong, and by what."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.experiments import OwnTrials, Pair, Swaps, own_trials, swaps
from msprobe_ms.accuracy.proof.slots import Slot, agree
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.accuracy.proof.words import (
    exchanged_sentence,
    golden_title,
    input_sentence,
    name_of,
    shown,
    tensor_difference,
    title_of,
)

#: Says of an argument of the target where it comes from, "" where nothing tells.
Producer = Callable[[Slot], str]


def decide(target: Call, golden: Call | None, producer: Producer) -> Proof:
    """Prove a call by its recorded tensors."""
    own = own_trials(target, "target")
    if golden is None:
        return _alone(target, own)
    theirs = own_trials(golden, "golden")
    trials = [*own.all, *theirs.all]
    if own.recorded.agrees is False:
        sentence = _wrong_by_itself(target, own)
        return Proof(target.entry, golden.entry, Finding.OPERATOR, sentence, trials).with_notes(
            "the golden's call is wrong by its own reference as well" if theirs.recorded.agrees is False else ""
        )
    if golden.outputs is None or (own.recorded.agrees is None and target.outputs is None):
        reason = own.recorded.note or "the golden holds no results"
        return Proof(target.entry, golden.entry, Finding.UNDECIDED, f"cannot be decided: {reason}", trials)
    swapped = swaps(target, golden)
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
    else:
        sentence, finding = _wrong_by_itself(target, own), Finding.OPERATOR
    return Proof(target.entry, None, finding, sentence, own.all)


def _wrong_by_itself(call: Call, own: OwnTrials) -> str:
    what = f"{title_of(call)} is wrong by its own reference: its recorded results are not what its own arguments make"
    if own.here is not None and own.here.agrees:
        return f"{what}, and run again here it is right: look at the device or the kernel that made the dump"
    if own.here is not None and own.here.agrees is False:
        return f"{what}, nor are those of another run here: the operator is wrong"
    return what


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
    if not _gradients_agree(target, golden):
        sentence = (
            f"{title_of(target)} is right, forward and backward: the gradient that arrives at it differs already, so "
            "look at the calls after it"
        )
        return Finding.INPUT, sentence, ()
    made = _made_with(target)
    sentence = (
        f"both sides are right: {title_of(target)} and {golden_title(golden, target)} give what their arguments make"
    )
    return Finding.RIGHT, f"{sentence} ({made})" if made else sentence, tuple(_differences(swapped.differing))


def _gradients_agree(target: Call, golden: Call) -> bool:
    sides = target.output_gradients, golden.output_gradients
    if None in sides:
        return True
    return all(agree(*both) for both in zip(*sides, strict=False) if None not in both)  # type: ignore[arg-type]


def _blamed(target: Call, needed: Sequence[Pair], producer: Producer) -> tuple[Finding, str, tuple[str, ...]]:
    """The sentence on the arguments that have to be the golden's for the results to agree."""
    title = title_of(target)
    if (both := exchanged(needed)) is not None:
        return Finding.EXCHANGED, exchanged_sentence(target, *both), ()
    settings = [pair for pair in needed if not pair[0].is_tensor]
    learnt = [pair for pair in needed if pair[0].is_tensor and pair[0].is_learnt]
    flowing = [pair for pair in needed if pair[0].is_tensor and not pair[0].is_learnt]
    notes = [f"its input `{name_of(own)}` differs as well: {tensor_difference(own.value, other.value)}"
             for own, other in flowing]  # fmt: skip
    if settings:
        return Finding.SETTING, setting_sentence(target, settings), (*_differences(learnt), *notes)
    if learnt:
        told = "; ".join(
            f"argument `{name_of(own)}` differs: {tensor_difference(own.value, other.value)}" for own, other in learnt
        )
        fed = " and ".join(f"`{name_of(own)}`" for own, _ in learnt)
        return Finding.PARAMETER, f"{told}; with the golden's {fed}, {title} gives the golden's results", tuple(notes)
    own, other = flowing[0]
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
