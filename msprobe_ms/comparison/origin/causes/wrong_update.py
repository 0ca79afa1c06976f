"""Updates that differ: what the optimizers of both sides did between two steps.

An update is a parameter now less the same parameter in the step before. Where the gradients of that step agree, the
updates should; how they differ tells which setting of the optimizer does. Sketches are linear, so that the sketch of an
update is the difference of two; without them nothing is said.

A parameter whose gradient is rounding noise is updated otherwise by right. So what counts is what most of them say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays import sketch
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.sentences import origin_at
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.names import PARAMETERS_GRAD

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

Vector = npt.NDArray[np.float64]

#: Epsilons of a parameter's norm that rounding leaves of an update of nothing.
_ROUNDING = 4.0
#: Times that an update has to be larger than rounding for its size and direction to be known.
_KNOWN = 50.0
#: The share of parameters whose word is that of all, and how many there must be.
_MOST, _FEWEST = 0.8, 2
#: Gradients of the step before that are further apart than this have set the updates apart themselves.
_SAME_GRADIENT = 0.02
#: Factors as near to each other as this are one; a factor as near to 1 as this is none.
_ONE_FACTOR, _NO_FACTOR = 0.05, 0.02
#: The least cosine of the difference of two updates with the parameter that speaks of weight decay.
_ALONG = 0.5
#: Part of the larger update by which the updates of one parameter differ for another reason than rounding.
_APART = 0.5
#: By this factor Adam's first update is larger without bias correction: (1 - 0.9) / sqrt(1 - 0.999).
_UNCORRECTED = 0.1 / math.sqrt(0.001)


class Update(NamedTuple):
    """What each side added to a parameter, as sketches.

    ``held``      the golden's parameter before
    ``rounding``  the norm that rounding may leave of no update at all
    """

    row: Row
    ours: Vector
    theirs: Vector
    held: Vector
    rounding: float

    @property
    def is_known(self) -> bool:
        """Whether both sides updated it, by more than rounding can tell of."""
        return min(sketch.norm(self.ours), sketch.norm(self.theirs)) > _KNOWN * self.rounding

    @property
    def factor(self) -> float:
        """How many times the golden's update the target's is."""
        return float(self.ours.dot(self.theirs) / self.theirs.dot(self.theirs))

    @property
    def apart(self) -> float:
        """By which part of the larger the two differ."""
        larger = max(sketch.norm(self.ours), sketch.norm(self.theirs))
        return sketch.distance(self.ours, self.theirs) / larger

    @property
    def left_alone_by(self) -> str:
        """The one side that did not update it; "" for neither, or both."""
        ours, theirs = sketch.norm(self.ours), sketch.norm(self.theirs)
        if min(ours, theirs) > self.rounding or max(ours, theirs) <= _KNOWN * self.rounding:
            return ""
        return "target" if ours < theirs else "golden"


class WrongUpdate:
    """The updates that made this step's parameters differ, where the step before was recorded as well."""

    def __init__(self, evidence: Evidence) -> None:
        self._nodes, self._before = evidence.nodes, evidence.before

    def find(self) -> list[Origin]:
        """One origin for a setting of the optimizer; else one for each parameter that one side alone left as it was."""
        if self._before is None or all(node.ratio_parameters <= 1 for node in self._nodes):
            return []
        if (dumps := self._before()) is None:
            return []
        updates = list(_updates(self._nodes, *dumps))
        known = [each for each in updates if each.is_known]
        if len(known) >= _FEWEST:
            for reason in (_of_factor(known), _of_decay(known), _of_another_rule(known)):
                if reason:
                    return [origin_at(known[0].row, reason, OriginKind.UPDATE)]
        lone = [(each.row, side) for each in updates if (side := each.left_alone_by)]
        reasons = [_of_one_side(side, len(lone)) for _, side in lone]
        return [origin_at(row, reason, OriginKind.UPDATE) for (row, _), reason in zip(lone, reasons, strict=True)]


def _of_factor(known: Sequence[Update]) -> str:
    """That the updates of most parameters differ by one factor."""
    factors = np.array([each.factor for each in known])
    middle = float(np.median(factors))
    alike = np.abs(factors - middle) <= _ONE_FACTOR * abs(middle)
    if alike.mean() < _MOST or abs(middle - 1) <= _NO_FACTOR or middle <= 0:
        return ""
    uncorrected = any(abs(middle / factor - 1) <= _NO_FACTOR for factor in (_UNCORRECTED, 1 / _UNCORRECTED))
    look = "Adam's bias correction, then at the learning rate" if uncorrected else "the learning rate"
    return (
        f"the target's updates are {middle:.3g} times the golden's in {int(alike.sum())} of {len(known)} parameters, "
        f"though gradients agree: look at {look}"
    )


def _of_decay(known: Sequence[Update]) -> str:
    """That what the updates differ by points along the parameters themselves."""
    apart = [(each, each.ours - each.theirs) for each in known if sketch.norm(each.held)]
    apart = [(each, rest) for each, rest in apart if sketch.norm(rest) > _KNOWN * each.rounding]
    if len(apart) < max(_FEWEST, _MOST * sum(1 for each in known if len(_shape(each.row)) > 1)):
        return ""
    along = np.array([sketch.cosine(rest, each.held) for each, rest in apart])
    middle = float(np.median(along))
    if abs(middle) < _ALONG or (np.sign(along) == np.sign(middle)).mean() < _MOST:
        return ""
    side = "target" if middle < 0 else "golden"
    return (
        f"the {side}'s updates take more off {len(apart)} of {len(known)} parameters, in proportion to these, though "
        "gradients agree: look at weight decay"
    )


def _of_another_rule(known: Sequence[Update]) -> str:
    """That the updates of most parameters differ, whichever way."""
    apart = [each.apart for each in known]
    differ = sum(each > _APART for each in apart)
    if differ < _MOST * len(known):
        return ""
    return (
        f"updates of {differ} of {len(known)} parameters differ by {np.median(apart):.0%}, though gradients agree: "
        "look at the optimizer's settings, weight decay among them"
    )


def _of_one_side(side: str, many: int) -> str:
    other = "golden" if side == "target" else "target"
    others = f"; so it is with {many - 1} other{'s' if many > 2 else ''}" if many > 1 else ""
    return f"the {side} did not update this parameter in the step before, the {other} did{others}: is it frozen?"


def _updates(nodes: Sequence[Node], target: Dump, golden: Dump) -> Iterator[Update]:
    """The updates of parameters whose gradients agreed in the step before, or were not recorded."""
    gradients = _gradients(target), _gradients(golden)
    seen = set[tuple[str, tuple[str, ...]]]()
    for node in nodes:
        for row in node.rows("parameters") if node.is_module_call else ():
            if row.target is None or row.golden is None or node.pair.golden is None or node.parsed is None:
                continue
            place = node.parsed.name, row.target.path
            if place in seen:
                continue
            seen.add(place)
            other = node.pair.golden.parsed
            slopes = gradients[0].get(place), gradients[1].get((other.name if other else "", row.golden.path))
            update = _update(row, _earlier(target, row.target), _earlier(golden, row.golden))
            if update is not None and _agree(*slopes):
                yield update


def _update(row: Row, our_past: Item | None, their_past: Item | None) -> Update | None:
    assert row.target is not None and row.golden is not None
    epsilon = max(parse_dtype(row.target.dtype).epsilon, parse_dtype(row.golden.dtype).epsilon)
    vectors = [_sketched(item) for item in (row.target, our_past, row.golden, their_past)]
    if not epsilon or any(vector is None for vector in vectors) or row.target.shape != row.golden.shape:
        return None
    ours, before, theirs, held = (vector for vector in vectors if vector is not None)
    rounding = _ROUNDING * epsilon * max(map(sketch.norm, (ours, before, theirs, held)))
    return Update(row, ours - before, theirs - held, held, rounding)


def _agree(ours: Item | None, theirs: Item | None) -> bool:
    mine, other = _sketched(ours), _sketched(theirs)
    if mine is None or other is None:
        return True
    return sketch.distance(mine, other) <= _SAME_GRADIENT * max(sketch.norm(mine), sketch.norm(other))


def _sketched(item: Item | None) -> Vector | None:
    return sketch.decode(item.sketch) if item is not None and item.sketch else None


def _earlier(dump: Dump, item: Item) -> Item | None:
    """The same item of another step."""
    entry = dump.entries.get(item.entry)
    items = entry.items if entry is not None else ()
    return next((each for each in items if each.state == item.state and each.path == item.path), None)


def _gradients(dump: Dump) -> Mapping[tuple[str, tuple[str, ...]], Item]:
    """The gradients of parameters, by module and name."""
    return {
        (entry.parsed.name, item.path): item
        for entry in dump.entries.values()
        if entry.parsed is not None and entry.parsed.direction == PARAMETERS_GRAD
        for item in entry.items
    }


def _shape(row: Row) -> tuple[int, ...]:
    return row.golden.shape if row.golden is not None and isinstance(row.golden.shape, tuple) else ()
