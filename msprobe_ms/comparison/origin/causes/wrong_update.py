"""Updates that differ though gradients agree: a setting of the optimizer, or parameters that one side leaves alone.

A parameter whose gradient is rounding noise is updated otherwise by right. So what counts is what most of them say.
But no optimizer leaves a parameter exactly as it is whose gradient is as large as the other side's, noise or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from msprobe_ms.arrays import sketch
from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.parts_left_alone import PartLeftAlone
from msprobe_ms.comparison.origin.sentences import origin_at
from msprobe_ms.comparison.origin.updates import Update
from msprobe_ms.comparison.statistics import element_count
from msprobe_ms.support.translation import tr, tr_count

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: The share of parameters whose word is that of all, and how many there must be.
_MOST, _FEWEST = 0.8, 2
#: The share of parameters whose updates differ by a large part: rounding is not seen to do that to any of a few dozen.
_MANY = 0.25
#: Factors as near to each other as this are one, and by this part of what sets it apart from 1: epsilon makes one of
#: each parameter. A factor as near to 1 as this is none.
_ONE_FACTOR, _ONE_PART, _NO_FACTOR = 0.05, 0.5, 0.02
#: Where epsilon takes half of this part off the updates of any parameter, it may take up to half off those of one whose
#: gradient is large in some elements alone, of which its root mean square does not tell.
_FELT, _HALF = 0.1, 0.5
#: The least cosine of the difference of two updates with the parameter that speaks of weight decay.
_ALONG = 0.5
#: Part of the larger update by which the updates of one parameter differ for another reason than rounding.
_APART = 0.5
#: By this factor Adam's first update is larger without bias correction: (1 - 0.9) / sqrt(1 - 0.999).
_UNCORRECTED = 0.1 / math.sqrt(0.001)
#: A factor of a single parameter: as near to 1 as this it is none, and this part of the update may be beside it.
_OWN_FACTOR, _BESIDE = 0.1, 0.1
#: Elements of such a parameter at least, and the root mean square of its gradient: epsilon decides on less.
_ELEMENTS, _SLOPE = 64, 1e-5


class WrongUpdate:
    """The updates that made this step's parameters differ, where the step before was recorded as well."""

    def __init__(self, evidence: Evidence) -> None:
        self._updates = [each for each in evidence.updates if each.same_gradient]
        self._left_alone = [
            each
            for each in evidence.updates
            if not each.same_gradient and each.same_size_of_gradient and each.left_alone_by
        ]
        self._parts, self._count = evidence.parts_left_alone, len(evidence.updates)

    def find(self) -> list[Origin]:
        """One origin for a setting of the optimizer; else one for each parameter that is an exception on one side."""
        known = [each for each in self._updates if each.is_known]
        if len(known) >= _FEWEST:
            for reason in (_of_factor(known), _of_decay(known), _of_another_rule(known)):
                if reason:
                    return [origin_at(known[0].row, reason, [self._left(known)], kind=OriginKind.UPDATE)]
        return _exceptions([*self._updates, *self._left_alone], self._parts)

    def _left(self, known: Sequence[Update]) -> str:
        """How many parameters have no say, and why."""
        if not (left := self._count - len(known)):
            return ""
        return tr_count(
            "1 other parameter does not count: its gradient differs, or its update is as small as rounding",
            "{count} other parameters do not count: their gradients differ, or their updates are as small as rounding",
            count=left,
        )


def _exceptions(updates: Sequence[Update], parts: Sequence[PartLeftAlone]) -> list[Origin]:
    """Parameters, or parts of them, that one side alone left as they were, or updated by a factor of their own."""
    felt = any(each.is_known and _fades(each) for each in updates)
    judged = (each for each in updates if not (felt and each.is_known and _smaller(each) > _HALF))
    found = [(each.row, told) for each in judged if (told := _of_one(each))]
    found += [(each.row, _left_alone(str(each.side), each.part.name)) for each in parts]
    so = tr_count(" (the same for {count} other)", " (the same for {count} others)", len(found) - 1)
    others = so if len(found) > 1 else ""
    return [
        origin_at(row, tr("{fact}{others}: {look}", fact=fact, others=others, look=look), kind=OriginKind.UPDATE)
        for row, (fact, look) in found
    ]


def _fades(update: Update) -> bool:
    """Whether epsilon took something off: of a gradient that is small, or more off some elements than off others."""
    if update.by_epsilon > _FELT:
        return _smaller(update) < 1 - _FELT / 2
    return _HALF < _smaller(update) < 1 - _FELT / 2 and update.beside_factor > _BESIDE


def _of_one(update: Update) -> tuple[str, str] | None:
    """What is wrong with the update of one parameter, and where to look."""
    if side := update.left_alone_by:
        return _left_alone(side, tr("this parameter"))
    if not update.is_known or update.slope is None or update.slope < _SLOPE:
        return None
    if abs(update.factor - 1) <= _OWN_FACTOR or update.beside_factor > _BESIDE or _size(update.row) < _ELEMENTS:
        return None
    times = tr("{factor:.3g} times the golden's", factor=update.factor)
    return (
        tr("the target's update of this parameter is {times}, though its gradient agreed", times=times),
        tr("look at its group's learning rate"),
    )


def _left_alone(side: str, parameter: str) -> tuple[str, str]:
    """The same of a parameter, or a part of one, that one side did not update."""
    other = "golden" if side == "target" else "target"
    fact = tr(
        "the {side} did not update {parameter} in the step before, the {other} did",
        side=tr(side),
        parameter=parameter,
        other=tr(other),
    )
    return fact, tr("is it frozen?")


def _of_factor(known: Sequence[Update]) -> str:
    """That the updates of most parameters differ by one factor."""
    factors = np.array([each.factor for each in known])
    middle = float(np.median(factors))
    alike = np.abs(factors - middle) <= min(_ONE_FACTOR * abs(middle), _ONE_PART * abs(middle - 1))
    if alike.mean() < _MOST or abs(middle - 1) <= _NO_FACTOR or middle <= 0:
        return ""
    if np.mean([_is_by_epsilon(each) for each in known]) >= _MOST:
        return ""
    uncorrected = any(abs(middle / factor - 1) <= _NO_FACTOR for factor in (_UNCORRECTED, 1 / _UNCORRECTED))
    look = tr("Adam's bias correction, then at the learning rate") if uncorrected else tr("the learning rate")
    return tr(
        "the target's updates of {parameters} are {middle:.3g} times the golden's: look at {look}",
        parameters=_share(int(alike.sum()), len(known)),
        middle=middle,
        look=look,
    )


def _is_by_epsilon(update: Update) -> bool:
    """Whether one side's update is smaller by no more than the place of epsilon makes it."""
    return _smaller(update) >= 1 - update.by_epsilon - _NO_FACTOR


def _smaller(update: Update) -> float:
    """How many times the larger update the smaller is; 0 for one that points elsewhere."""
    return min(update.factor, 1 / update.factor) if update.factor > 0 else 0.0


def _of_decay(known: Sequence[Update]) -> str:
    """That what the updates differ by points along the parameters themselves."""
    apart = [(each, each.ours - each.theirs) for each in known if sketch.norm(each.held)]
    apart = [(each, rest) for each, rest in apart if each.is_large(rest)]
    if len(apart) < max(_FEWEST, _MOST * sum(1 for each in known if len(_shape(each.row)) > 1)):
        return ""
    along = np.array([sketch.cosine(rest, each.held) for each, rest in apart])
    middle = float(np.median(along))
    if abs(middle) < _ALONG or (np.sign(along) == np.sign(middle)).mean() < _MOST:
        return ""
    side = "target" if middle < 0 else "golden"
    return tr(
        "the {side}'s updates shrink {parameters} more, in proportion to their values: look at weight decay",
        side=tr(side),
        parameters=_share(len(apart), len(known)),
    )


def _of_another_rule(known: Sequence[Update]) -> str:
    """That the updates of many parameters differ, whichever way."""
    apart = [each.apart for each in known if each.apart - each.by_epsilon > _APART]
    if len(apart) < max(_FEWEST, _MANY * len(known)):
        return ""
    return tr(
        "the updates of {parameters} differ by {median:.0%}: look at the optimizer's settings, weight decay, "
        "clipping of gradients",
        parameters=_share(len(apart), len(known)),
        median=np.median(apart),
    )


def _share(count: int, known: int) -> str:
    """So many of the parameters whose gradients agreed, or all of them."""
    if count == known:
        return tr("all {count} parameters whose gradients agreed", count=count)
    return tr("{count} of the {known} parameters whose gradients agreed", count=count, known=known)


def _shape(row: Row) -> tuple[int, ...]:
    return row.golden.shape if row.golden is not None and isinstance(row.golden.shape, tuple) else ()


def _size(row: Row) -> int:
    return element_count(row.golden) if row.golden is not None else 0
