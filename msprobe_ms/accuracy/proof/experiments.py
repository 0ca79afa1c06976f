"""Experiments with the recorded tensors of a call: each side by its own reference, then the target's with the golden's
values, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.gradients import fed_pairs
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.proof.slots import Slot, agree, paired, slots_of, with_value
from msprobe_ms.accuracy.proof.trial import Trial, held_against
from msprobe_ms.accuracy.proof.words import framework_title, name_of, title_of
from msprobe_ms.frameworks.api_calls import Value
from msprobe_ms.support.translation import tr, tr_join

#: Arguments that differ, up to which each is tried alone.
_MOST = 12
_ALL = tr("with the golden's values")

Pair = tuple[Slot, Slot]


class OwnTrials(NamedTuple):
    """One side alone: what was recorded, and what its framework gives here, each held against float64.

    ``no_gradients``: why its gradients are not compared, where they were recorded
    """

    recorded: Trial
    here: Trial | None
    no_gradients: str = ""

    @property
    def all(self) -> list[Trial]:
        return [self.recorded, *([self.here] if self.here is not None else [])]


def own_trials(call: Call, side: str) -> OwnTrials:
    """Hold what was recorded, and what the framework gives here, against the reference on the call's own arguments."""
    words = tr("{title} as recorded ({side}), compared with float64", title=title_of(call), side=tr(side))
    try:
        reference = call.operation.in_double(call.arguments, call.output_gradients)
    except CannotRun as reason:
        if call.output_gradients is not None:
            without = own_trials(replace(call, output_gradients=None, input_gradients=None), side)
            return without._replace(no_gradients=tr("{reason}", reason=reason))
        return OwnTrials(Trial(words, None, note=tr("{reason}", reason=reason)), None)
    if call.outputs is None:
        recorded = Trial(words, None, note=tr("no results were recorded"))
    else:
        recorded = held_against(words, call, reference, call.outputs, call.input_gradients)
    if call.is_module:
        return OwnTrials(recorded, None)
    words = tr(
        "the same call run here in {framework}, compared with float64", framework=framework_title(call.framework)
    )
    try:
        outcome = call.operation.as_computed(call.arguments, call.output_gradients)
        here = held_against(words, call, reference, outcome.outputs, outcome.gradients or None)
    except CannotRun as reason:
        here = Trial(words, None, note=tr("{reason}", reason=reason))
    return OwnTrials(recorded, here)


class Swaps(NamedTuple):
    """The target's call with values of the golden's.

    ``differing``  arguments that differ, of both sides, and gradients that arrive
    ``trials``     what was run
    ``agrees``     whether the target's operation gives the golden's results, whatever differs
    ``needed``     those of ``differing`` that have to be the golden's for that; None: even all of them do not do it
    """

    differing: Sequence[Pair]
    trials: Sequence[Trial]
    agrees: bool
    needed: Sequence[Pair] | None


def swaps(target: Call, golden: Call, gradients: Sequence[Value] | None = None) -> Swaps:
    """Run the target's call with the golden's values where they differ, each alone, then all, then all but one.

    ``gradients``: the golden's, in the target's order; then they are held against each other in place of the results,
    and the gradients that arrive are exchanged as arguments are.
    """
    pairs = list(paired(slots_of(target), slots_of(golden)))
    if gradients is not None:
        pairs += fed_pairs(target, golden)
    differing = [(own, other) for own, other in pairs if not agree(own.value, other.value)]
    base = target
    for own, other in pairs:  # what agrees but for rounding is made the same, so that nothing of it is left
        if own.is_tensor and (own, other) not in differing:
            base = with_value(base, own, other.value)
    run = _Exchange(target, golden, base, gradients)
    first = run.without(differing)
    trials = [first]
    if first.agrees or not differing:
        return Swaps(differing, trials, bool(first.agrees), [] if first.agrees else None)
    if len(differing) > 1:
        for pair in differing[:_MOST]:
            trials.append(run.with_those([pair]))
            if trials[-1].agrees:
                return Swaps(differing, trials, False, [pair])
    trials.append(run.with_those(differing))
    if not trials[-1].agrees:
        return Swaps(differing, trials, False, None)
    needed = [
        pair
        for pair in differing
        if len(differing) == 1 or not run.with_those([each for each in differing if each != pair]).agrees
    ]
    return Swaps(differing, trials, False, needed)


class _Exchange(NamedTuple):
    """Runs of the target's operation in float64; ``base``: its call, with all that agrees made the golden's."""

    target: Call
    golden: Call
    base: Call
    gradients: Sequence[Value] | None

    def without(self, differing: Sequence[Pair]) -> Trial:
        left = tr_join(", ", [name_of(own) for own, _ in differing])
        return self._run(self.base, tr("with the golden's values, but its own {left}", left=left) if left else _ALL)

    def with_those(self, those: Sequence[Pair]) -> Trial:
        call = self.base
        for own, other in those:
            call = with_value(call, own, other.value)
        return self._run(
            call,
            tr("with the golden's {names}", names=tr_join(", ", [name_of(own) for own, _ in those])) if those else _ALL,
        )

    def _run(self, call: Call, fed: str) -> Trial:
        """What the operation gives, beside what the golden gave: its results, or its gradients."""
        is_backward = self.gradients is not None
        title = title_of(self.target)
        words = (
            tr("{title} in float64 {fed}, compared with the golden's gradients", title=title, fed=fed)
            if is_backward
            else tr("{title} in float64 {fed}, compared with the golden's results", title=title, fed=fed)
        )
        try:
            outcome = call.operation.in_double(call.arguments, call.output_gradients if is_backward else None)
        except CannotRun as reason:
            return Trial(words, None, note=tr("{reason}", reason=reason))
        if is_backward:
            return held_against(words, call, outcome, (), self.gradients)
        return held_against(words, call, outcome, self.golden.outputs or ())
