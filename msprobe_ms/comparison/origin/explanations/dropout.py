"""Whether two tensors differ as dropout leaves them: the same values under two random masks.

Dropout that is called as a function, in code that is not recorded, shows in what the next call takes in. Elements show
it: dropout with probability p sets that share of them to zero and the others to 1 / (1 - p) of what they were, so that
where neither side is zero both agree, and the places where one side alone is zero fall to either by chance. Statistics
of whole tensors can only say that two masks would leave such.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.comparison.origin.explanations.random_numbers import HIDDEN, SEED
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.statistics import element_count, magnitude, root_mean_square
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence, Load
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk

_MASKED = (
    tr("probably dropout, called as a function in code that was not recorded: {seed}", seed=SEED),
    tr("elements that are zero on neither side agree; which elements are zero on one side alone looks random"),
    HIDDEN,
)
_PERHAPS_MASKED = (
    tr("its statistics differ no more than two random masks make them: it may be dropout, called as a function"),
    tr("if dropout is called there as a function, it may differ: {seed}", seed=SEED),
)

#: Standard deviations within which what chance makes falls: of a hundred tests none fails for healthy dropout.
_SURE = 4.0
#: Places zero on one side alone from which on chance can be told from order.
_ENOUGH = 20
#: In statistics (see ``_statistics_allow``), the least that masks change, as a part of their standard deviation at
#: p = 1/2.
_LEAST = 0.05

#: The relative difference up to which statistics allow for masks in a tensor large enough: in small ones any error
#: does.
_TELLING = 0.25


class Dropout:
    """Dropout called as a function in code that was not recorded: before an input, or inside a module of the user's."""

    name: ClassVar[str] = "dropout"
    phase: ClassVar[Phase] = Phase.ORIGIN

    def __init__(self, evidence: Evidence) -> None:
        self._load, self._unrecorded = evidence.load, evidence.unrecorded

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Anything where elements show two masks; nothing, but a sentence, where statistics allow for such."""
        if node.is_backward or node.is_save:
            return None
        if row.state != "input" and not _runs_code_of_the_users(node):
            return None
        found = masked(row, self._load)
        if found is Masked.PROBABLY:
            return Allowance(self.name, because=_MASKED, effect=Effect.RANDOM)
        if found is Masked.PERHAPS and (row.state != "input" or self._unrecorded.made(node, row)):
            return Allowance(self.name, 0.0, _PERHAPS_MASKED, Effect.RANDOM)
        return None


def _runs_code_of_the_users(node: Node) -> bool:
    """Whether it is a module that calls others; where functions are recorded, dropout has its own entry."""
    modules = bool(node.children) and all(child.parsed and child.parsed.is_module for child in node.children)
    return modules and node.kind is not Kind.COLLECTIVE


class Masked(Enum):
    """Two random masks are what elements show; may be for all that is known; or are not it."""

    PROBABLY = "probably"
    PERHAPS = "perhaps"
    NO = "no"


def masked(row: Row, load: Load | None) -> Masked:
    """Whether what a row differs by may be two random masks on values that agree."""
    golden = row.golden
    if golden is None or golden.kind != "tensor" or not parse_dtype(golden.dtype).epsilon or row.held_to is None:
        return Masked.NO
    both = load(row) if load is not None else None
    if both is not None and not any(map(np.iscomplexobj, both)):
        target, other = (each.ravel().astype(np.float64) for each in both)
        if target.shape == other.shape and are_masked_alike(target, other, row.held_to):
            return Masked.PROBABLY
    return Masked.PERHAPS if _statistics_allow(row) else Masked.NO


def are_masked_alike(target: npt.NDArray[np.float64], golden: npt.NDArray[np.float64], tolerance: float) -> bool:
    """Whether two flat arrays are the same values, scaled alike, under two random masks of one probability.

    ``tolerance``: the relative difference in root mean square that says nothing.

    A share of zeros in both (a ReLU before the dropout) does no harm. The places zero on one side alone are as many on
    either, and follow each other as tosses of a coin do: the runs test of Wald and Wolfowitz, On a test whether two
    samples are from the same population, 1940. A mask with a shape of its own (causal, padding) fails it.
    """
    ours, theirs = (target == 0) & (golden != 0), (golden == 0) & (target != 0)
    kept = (target != 0) & (golden != 0)
    first, second = int(ours.sum()), int(theirs.sum())
    places = first + second
    if places < _ENOUGH or not kept.any() or not first or not second:
        return False
    if abs(first - second) > _SURE * math.sqrt(places):
        return False
    apart = target[kept] - golden[kept]
    if not np.linalg.norm(apart) <= tolerance * np.linalg.norm(golden[kept]):  # not, for NaN
        return False
    sides = ours[ours | theirs]
    runs = 1 + int((sides[1:] != sides[:-1]).sum())
    product = 2.0 * first * second
    deviation = math.sqrt(product * (product - places) / (places**2 * (places - 1)))
    return abs(runs - 1 - product / places) <= _SURE * deviation


def _statistics_allow(row: Row) -> bool:
    """Whether Mean and Norm differ by what two masks make of n elements.

    Under masks of probability p a mean differs by rms · sqrt(2p / (1 - p) / n), and so about, in itself, does a norm:
    by rms · sqrt(2 / n) at p = 1/2, more of which is seldom used, and by a seventh of it at p = 1/100.
    """
    target, golden = row.target, row.golden
    assert target is not None and golden is not None
    count, size = element_count(golden), root_mean_square(golden)
    if not count or not size or not isinstance(target.mean, float) or not isinstance(target.norm, float):
        return False
    mean = golden.mean if isinstance(golden.mean, float) else math.nan
    differences = abs(target.mean - mean) / size, abs(target.norm / magnitude(golden.norm) - 1)
    by_chance = math.sqrt(2 / count)
    if _SURE * by_chance > _TELLING:
        return False
    return _LEAST * by_chance <= max(differences) <= _SURE * by_chance
