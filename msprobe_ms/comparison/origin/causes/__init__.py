"""Kinds of origin, one a module, in the order in which they are looked for.

Each owns its sentence. A new cause is a module here and a line in ``CAUSES``, in ``AFTERWARDS`` where it is looked for
once the walk over the nodes is over, or in ``BEFOREHAND`` where all that the walk would meet follows from it.
``WrongOptimizer`` is in none of them: it alone is asked of the updates that optimizers make, which are no calls.
"""

from __future__ import annotations

from msprobe_ms.comparison.origin.causes.changed_precision import ChangedPrecision
from msprobe_ms.comparison.origin.causes.lone_calls import LoneCalls
from msprobe_ms.comparison.origin.causes.missing_gradient import MissingGradient
from msprobe_ms.comparison.origin.causes.no_longer_added import NoLongerAdded
from msprobe_ms.comparison.origin.causes.no_longer_passed_on import NoLongerPassedOn
from msprobe_ms.comparison.origin.causes.other_precision import OtherPrecision
from msprobe_ms.comparison.origin.causes.rounded_values import RoundedValues
from msprobe_ms.comparison.origin.causes.slow_drift import SlowDrift
from msprobe_ms.comparison.origin.causes.small_excess import SmallExcess
from msprobe_ms.comparison.origin.causes.wrong_input import WrongInput
from msprobe_ms.comparison.origin.causes.wrong_parameter import WrongParameter
from msprobe_ms.comparison.origin.causes.wrong_result import WrongResult
from msprobe_ms.comparison.origin.causes.wrong_update import WrongUpdate
from msprobe_ms.comparison.origin.protocols import Cause, EarlyCause, LateCause

BEFOREHAND: tuple[type[EarlyCause], ...] = (WrongUpdate,)
#: The first that speaks of a node counts.
CAUSES: tuple[type[Cause], ...] = (WrongParameter, WrongResult, OtherPrecision, WrongInput, SmallExcess)
AFTERWARDS: tuple[type[LateCause], ...] = (
    MissingGradient,
    ChangedPrecision,
    NoLongerPassedOn,
    NoLongerAdded,
    RoundedValues,
    SlowDrift,
    LoneCalls,
)
