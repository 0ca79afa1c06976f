"""Updates: what the optimizers of both sides added to the parameters since the step before.

Sketches are linear, so that the sketch of an update is the difference of two; without them nothing is known. Where the
gradients of the step before agree, the updates should.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays import sketch
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.pairing.coverage import RUNNING_STATISTICS
from msprobe_ms.comparison.statistics import element_count, have_sketches, magnitude, root_mean_square
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.names import PARAMETERS_GRAD

Vector = npt.NDArray[np.float64]

#: Epsilons of a parameter's norm that rounding leaves of an update of nothing.
ROUNDING = 4.0
#: Times that an update has to be larger than rounding for its size and direction to be known.
KNOWN = 50.0
#: Adam's epsilon as it is added to the corrected moment, and to the one that is not: over sqrt(1 - 0.999); and how much
#: more of it elements feel that are smaller than most.
_CORRECTED_EPSILON, _EPSILON, _SMALLER = 1e-8, 1e-8 / math.sqrt(0.001), 3.0
#: Gradients of the step before that are further apart than this have set the updates apart themselves.
_SAME_GRADIENT = 0.02
#: Part by which the updates of one parameter may differ where its gradients agree; 0.4 was seen in healthy trainings.
_APART = 0.5
#: Updates whose norms, as sketches estimate them, differ by no more times may be of one size.
_ONE_SIZE = 2.0
#: Times that two updates may be further apart than their directions make them, as sketches estimate it.
_CHANCE = 1.4
#: Elements from which on the largest tells how many others are rounding.
_MANY = 1_000
#: Times that sketches may show a step larger than a full one; which part of an update that fades must lie in the
#: direction of the other, where all of it does, and which part must be no multiple of it.
_FULL, _ALIKE, _FADING = 1.5, 0.5, 0.2


class Update(NamedTuple):
    """What each side added to a parameter, as sketches.

    ``before``    the target's parameter before
    ``held``      the golden's parameter before
    ``rounding``  the norm that rounding may leave of no update at all
    ``slope``     root mean square of the golden's gradient in the step before; None where it was not recorded
    ``gradients`` both sides' gradients in the step before, as sketches; None where one was not recorded
    ``may_be_rounding``  the share of the elements whose gradient in the step before may have been rounding
    """

    row: Row
    ours: Vector
    theirs: Vector
    before: Vector
    held: Vector
    rounding: float
    slope: float | None
    gradients: tuple[Vector, Vector] | None = None
    may_be_rounding: float = 1.0

    @property
    def is_known(self) -> bool:
        """Whether both sides updated it, by more than rounding can tell of."""
        return self.is_large(self.ours) and self.is_large(self.theirs)

    def is_large(self, vector: Vector) -> bool:
        """Whether it is so much larger than rounding that its size and direction are known."""
        return sketch.norm(vector) > KNOWN * self.rounding

    @property
    def began_equal(self) -> bool:
        """Whether the parameter of both sides was the same before, but for rounding."""
        return sketch.distance(self.before, self.held) <= self.rounding

    @property
    def sizes(self) -> tuple[float, float]:
        """The norms of both."""
        return sketch.norm(self.ours), sketch.norm(self.theirs)

    @property
    def factor(self) -> float:
        """How many times the golden's update the target's is."""
        return float(self.ours.dot(self.theirs) / self.theirs.dot(self.theirs))

    @property
    def apart(self) -> float:
        """By which part of the larger the two differ."""
        return _part_apart(self.ours, self.theirs)

    @property
    def beside_factor(self) -> float:
        """Which part of the target's update is not the golden's times the factor."""
        return sketch.distance(self.ours, self.factor * self.theirs) / sketch.norm(self.ours)

    @property
    def gradient_apart(self) -> float:
        """By which part of the larger the gradients differed in the step before; 0 where one was not recorded."""
        return _part_apart(*self.gradients) if self.gradients is not None else 0.0

    @property
    def same_gradient(self) -> bool:
        """Whether the gradients agreed in the step before; so they are taken to where not recorded."""
        return self.gradient_apart <= _SAME_GRADIENT

    @property
    def same_size_of_gradient(self) -> bool:
        """Whether the gradients were of one size in the step before, in whatever direction each; or not recorded."""
        if self.gradients is None:
            return True
        less, more = sorted(map(sketch.norm, self.gradients))
        return self.same_gradient or more <= _ONE_SIZE * less

    @property
    def follows_gradient(self) -> bool:
        """Whether the two differ by no more than the gradients did in the step before, in direction and in size.

        An optimizer makes steps in proportion to the gradient, or of one size.
        """
        if self.gradients is None or self.apart > _CHANCE * self.gradient_apart:
            return False
        smaller, larger = sorted(self.sizes)
        less, more = sorted(map(sketch.norm, self.gradients))
        return larger * less <= _ONE_SIZE * smaller * more

    @property
    def by_epsilon(self) -> float:
        """The part by which updates of two frameworks' Adam may differ, where gradients are as small as epsilon.

        PyTorch adds epsilon to the corrected moment and MindSpore to the one that is not, where it is
        1 / sqrt(1 - 0.999) times as much in the first step.
        """
        return min(1.0, _SMALLER * _EPSILON / (self.slope + _EPSILON)) if self.slope else 0.0

    @property
    def step_sizes(self) -> tuple[float, float]:
        """The root mean squares of both."""
        count = math.sqrt(max(1, element_count(self.row.golden))) if self.row.golden is not None else 1.0
        return sketch.norm(self.ours) / count, sketch.norm(self.theirs) / count

    def fades(self, full: float) -> bool:
        """Whether both are steps in one direction, of which one fades in some elements: Adam's epsilon does that.

        Elements whose gradient is as small as epsilon make steps between none and a full one, each side its own; the
        root mean square of a gradient does not tell of them where others are larger (queries and keys beside values).
        ``full``: the root mean square of steps that do not fade. An update that is a multiple of the other is another
        setting.
        """
        smaller, larger = sorted((self.ours, self.theirs), key=sketch.norm)
        if max(self.step_sizes) > _FULL * full or not larger.dot(larger):
            return False
        factor = float(smaller.dot(larger) / larger.dot(larger))
        beside = sketch.distance(smaller, factor * larger)
        one_direction = float(smaller.dot(larger)) > _ALIKE * float(smaller.dot(smaller))
        return one_direction and beside > _FADING * sketch.norm(smaller)

    @property
    def is_of_rounding(self) -> bool:
        """Whether both are steps of one size, as far apart as those that are made of rounding, in any direction."""
        smaller, larger = sorted(self.sizes)
        return larger <= _ONE_SIZE * smaller and self.apart <= _CHANCE * math.sqrt(2 * self.may_be_rounding)

    @property
    def is_steady(self) -> bool:
        """Whether both sides made much the same of gradients that agree."""
        return self.same_gradient and self.apart <= self.by_epsilon + _APART * self.is_known

    @property
    def left_alone_by(self) -> str:
        """The one side that did not update it; "" for neither, or both.

        Nor for one whose gradient is so small that the other place of epsilon leaves nothing of the update.
        """
        ours, theirs = self.sizes
        least = 1.0 if self.slope is None else (self.slope + _CORRECTED_EPSILON) / (self.slope + _EPSILON)
        if min(ours, theirs) > self.rounding or least * max(ours, theirs) <= KNOWN * self.rounding:
            return ""
        return "target" if ours < theirs else "golden"


#: A module's parameter: name of the module's calls without direction, path of the parameter.
Place = tuple[str, tuple[str, ...]]


def place_of(row: Row) -> Place:
    """Return whose parameter a row is, the same for all calls of its module."""
    item = row.target
    return (item.entry.partition(".forward.")[0], item.path) if item is not None else ("", ())


def apart_at_most(nodes: Sequence[Node], target: Dump, golden: Dump) -> dict[Place, float]:
    """Return how far apart the updates may have set parameters of which one side alone has a sketch.

    They are joined of several on the other side. Optimizers that do the same make updates of one size, at most in
    opposite directions. Nothing is here where that size is not known either.
    """
    found: dict[Place, float] = {}
    for node in nodes:
        for row in node.rows("parameters") if node.is_module_call else ():
            for item, other, before in ((row.target, row.golden, target), (row.golden, row.target, golden)):
                if item is None or other is None or other.sketch or (now := sketched(item)) is None:
                    continue
                past = sketched(same_item(before, item))
                if past is not None and (size := sketch.norm(now)):
                    found[place_of(row)] = 2 * sketch.distance(now, past) / size
    return found


def updates_since(nodes: Sequence[Node], target: Dump, golden: Dump) -> Iterator[Update]:
    """Yield the updates since the step of ``target`` and ``golden``."""
    gradients = gradients_of(target), gradients_of(golden)
    seen = set[tuple[str, tuple[str, ...]]]()
    for node in nodes:
        for row in node.rows("parameters") if node.is_module_call else ():
            if row.target is None or row.golden is None or node.pair.golden is None or node.parsed is None:
                continue
            if row.golden.path[-1:] and row.golden.path[-1] in RUNNING_STATISTICS:  # no optimizer updates these
                continue
            place = node.parsed.name, row.target.path
            if place in seen:
                continue
            seen.add(place)
            other = node.pair.golden.parsed
            slopes = gradients[0].get(place), gradients[1].get((other.name if other else "", row.golden.path))
            slope = root_mean_square(slopes[1]) if slopes[1] is not None else None
            rounding = share_of_rounding(slopes[1]) if slopes[1] is not None else 1.0
            update = _update(row, same_item(target, row.target), same_item(golden, row.golden))
            if update is not None:
                yield update._replace(slope=slope, gradients=_both(*slopes), may_be_rounding=rounding)


def share_of_rounding(gradient: Item) -> float:
    """Return the share of a gradient's elements that may be rounding beside the others; 1 where nothing tells.

    Of n normal numbers the largest is about sqrt(2 ln n) times their root mean square, and 1 / sqrt(1 - p) times that
    where a share p of all are next to nothing. Most gradients have heavier tails than normal numbers: more is let pass.
    """
    size, count = root_mean_square(gradient), element_count(gradient)
    if not size or count < _MANY:
        return 1.0
    largest = max(magnitude(gradient.maximum), magnitude(gradient.minimum)) / size
    return max(0.0, 1.0 - 2 * math.log(count) / largest**2) if largest else 1.0


def _update(row: Row, our_past: Item | None, their_past: Item | None) -> Update | None:
    assert row.target is not None and row.golden is not None
    epsilon = max(parse_dtype(row.target.dtype).epsilon, parse_dtype(row.golden.dtype).epsilon)
    vectors = [sketched(item) for item in (row.target, our_past, row.golden, their_past)]
    if not epsilon or any(vector is None for vector in vectors) or not have_sketches(row.target, row.golden):
        return None
    ours, before, theirs, held = (vector for vector in vectors if vector is not None)
    rounding = ROUNDING * epsilon * max(map(sketch.norm, (ours, before, theirs, held)))
    return Update(row, ours - before, theirs - held, before, held, rounding, slope=None)


def _both(ours: Item | None, theirs: Item | None) -> tuple[Vector, Vector] | None:
    mine, other = sketched(ours), sketched(theirs)
    return None if mine is None or other is None else (mine, other)


def _part_apart(one: Vector, other: Vector) -> float:
    """The distance of two vectors as a part of the larger; 0 of zeros."""
    larger = max(sketch.norm(one), sketch.norm(other))
    return sketch.distance(one, other) / larger if larger else 0.0


def sketched(item: Item | None) -> Vector | None:
    """Return the sketch of an item; None where it has none."""
    return sketch.decode(item.sketch) if item is not None and item.sketch else None


def gradients_of(dump: Dump) -> Mapping[tuple[str, tuple[str, ...]], Item]:
    """Return the gradients of parameters of a dump, by module and name."""
    return {
        (entry.parsed.name, item.path): item
        for entry in dump.entries.values()
        if entry.parsed is not None and entry.parsed.direction == PARAMETERS_GRAD
        for item in entry.items
    }
