"""Prove without the tool that both sides of pairs compute the same: ``python -m zoo.proof ROOT PAIR…``.

Both are trained as they are recorded, each in a process of its own, and the golden side in float64 beside them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import numpy as np

from zoo import golden_side, target_side
from zoo.alone import alone
from zoo.environment import import_zoos
from zoo.jobs import GOLDEN, STEPS, TARGET, Trained, weights_file
from zoo.pair import Pair, load
from zoo.rounding import GRADIENT, LOSS, PARAMETER, Errors, beyond_rounding, errors


class Disagree(Exception):
    """Both sides of a pair do not compute the same."""


#: What a side computed in each step, and what it ought to have, with how far rounding may move that.
_Side = tuple[list[Trained], list[tuple[Trained, Trained]]]


def prove(name: str, root: Path) -> list[Errors]:
    """How far both sides of a pair are off what they ought to compute; also written beside the weights.

    Raises:
        Disagree: the target is off by more than rounding.
    """
    pair = load(name, root)
    golden, exact = alone(_golden_side, name, root)
    target = alone(_target_side, name, root)
    steps = [_in_golden(pair, *each) for each in zip(target, golden, strict=True)]
    exact_target = alone(golden_side.exactly, pair, steps, golden_side.EPSILON_OF_TARGET)
    found = list(_errors(pair, (golden, exact), (target, exact_target)))
    (root / name / "proof.json").write_text(json.dumps([astuple(each) for each in found]), encoding="utf-8")
    if beyond := beyond_rounding(found):
        times, worst = beyond[0]
        raise Disagree(
            f"{name}: {len(beyond)} of {len(found)} off by more than rounding, up to {times:.3g} times: {worst}"
        )
    return found


def _golden_side(name: str, root: Path) -> _Side:
    pair = load(name, root)
    golden_side.save_weights(golden_side.make(pair), weights_file(root, name))
    golden = golden_side.trained(pair)
    return golden, golden_side.exactly(pair, golden)


def _target_side(name: str, root: Path) -> list[Trained]:
    return target_side.trained(load(name, root), dict(np.load(weights_file(root, name))))


def _in_golden(pair: Pair, target: Trained, golden: Trained) -> Trained:
    """A step of the target by the golden's names and layouts; what the target does not train is the golden's."""
    arrays = []
    for own, others in ((target.gradients, golden.gradients), (target.parameters, golden.parameters)):
        filled = {name: other.copy(order="C") for name, other in others.items()}
        for path, value in own.items():
            if (name := pair.parameter(path)) in filled:
                places = np.arange(filled[name].size).reshape(filled[name].shape)
                filled[name].reshape(-1)[pair.value(path, places, value.shape)] = value
        arrays.append(filled)
    return Trained(target.loss, *arrays)


def _errors(pair: Pair, golden: _Side, target: _Side) -> Iterator[Errors]:
    """Of losses, of gradients, and of parameters as the next step finds them."""
    for step, (one, (exact, _), other, (exact_other, moved)) in enumerate(zip(*golden, *target, strict=True)):
        yield errors(step, LOSS, "", (one.loss, exact.loss), (other.loss, exact_other.loss), moved.loss)
        references = (one, exact, exact_other, moved)
        for path, value in other.gradients.items():
            name = pair.parameter(path)
            if name not in one.gradients:
                yield errors(step, GRADIENT, path, (0, 0), (value, np.zeros_like(value)))
                continue
            own, ought, ours, may = (pair.value(path, each.gradients[name], value.shape) for each in references)
            yield errors(step, GRADIENT, path, (own, ought), (value, ours), may)
            if step < STEPS - 1:
                own, ought, ours = (pair.value(path, each.parameters[name], value.shape) for each in references[:3])
                yield errors(step, PARAMETER, path, (own, ought), (other.parameters[path], ours))
        for name in one.gradients.keys() - {pair.parameter(path) for path in other.gradients}:
            own, ought, ours = (each.gradients[name] for each in references[:3])
            yield errors(step, GRADIENT, name, (own, ought), (np.zeros_like(ours), ours))


if __name__ == "__main__":
    failed = False
    import_zoos(GOLDEN, TARGET)
    for name in sys.argv[2:]:
        try:
            print(f"{name}: {len(prove(name, Path(sys.argv[1])))} losses, gradients and parameters", flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}"[:1500], flush=True)
            failed = True
    sys.exit(failed)
