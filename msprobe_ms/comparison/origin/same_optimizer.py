"""How far apart optimizers that do the same set the parameters of both sides.

They do the same when they make the same of gradients that agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from msprobe_ms.arrays import sketch
from msprobe_ms.comparison.origin.updates import Place, Update, place_of
from msprobe_ms.comparison.statistics import element_count

#: Optimizers do the same when the updates of three quarters of all parameters differ by no more than this part: in
#: healthy trainings of common networks by 0.08 at most, under another weight decay by 0.6 at least (that of vectors,
#: which are a good half of all, is often hardly felt).
_SAME, _QUARTERS = 0.2, 0.75
#: Updates that tell whether an optimizer divides by the size of gradients.
_SEVERAL = 4


def apart_by_updates(updates: Sequence[Update]) -> dict[Place, float]:
    """Return by how much of each parameter its two updates differ, where both optimizers do the same; else {}.

    They do where they make the same of gradients that agree. What they make of gradients that differ, as noise does,
    may differ: what is wrong with these is told in the step before. So may what Adam makes of gradients near epsilon.
    Where no update is known, as a narrow float hides it, one may differ by no more than its own gradients do.
    """
    apart = [max(0.0, each.apart - each.by_epsilon) for each in updates if each.same_gradient and each.is_known]
    if not apart:
        return _parts([each for each in updates if not each.same_gradient and each.follows_gradient])
    if float(np.quantile(apart, _QUARTERS)) > _SAME:
        return {}
    normalised = are_normalised(updates)
    full = max((max(each.step_sizes) for each in updates if each.is_known and each.is_steady), default=0.0)
    known = [
        each
        for each in updates
        if not each.same_gradient
        or each.is_steady
        or (normalised and each.is_known and (each.is_of_rounding or each.fades(full)))
    ]
    return _parts(known)


def _parts(updates: Sequence[Update]) -> dict[Place, float]:
    """By which part of each parameter its two updates differ."""
    sizes = ((each, sketch.norm(each.held + each.theirs)) for each in updates)
    # Beside zeros that stay zeros any difference is infinite.
    return {
        place_of(each.row): sketch.distance(each.ours, each.theirs) / size if size else math.inf for each, size in sizes
    }


def are_normalised(updates: Sequence[Update]) -> bool:
    """Whether the optimizer divides by the size of gradients, as Adam does: then updates are more alike than these.

    Such an optimizer makes steps of full size, in any direction, of elements whose gradient is rounding.
    """
    known = [each for each in updates if each.is_known and each.slope]
    if len(known) < _SEVERAL:
        return False
    counts = [math.sqrt(max(1, element_count(each.row.golden))) for each in known if each.row.golden is not None]
    sizes = np.log([sketch.norm(each.theirs) / count for each, count in zip(known, counts, strict=True)])
    slopes = np.log([each.slope or 1.0 for each in known])
    return bool(np.std(sizes) < np.std(sizes - slopes))
