"""Reasons for which two healthy runs differ, one a module, in the order in which they are tried.

The *error ratio* is the deviation of a value over what is explained; the origin is the first node with a value that
nothing explains. A new explanation is a module here and a line in ``EXPLANATIONS``.
"""

from __future__ import annotations

from msprobe_ms.comparison.origin.explanations.agreed_at_first import AgreedAtFirst
from msprobe_ms.comparison.origin.explanations.agreed_where_made import AgreedWhereMade
from msprobe_ms.comparison.origin.explanations.agreeing_results import AgreeingResults
from msprobe_ms.comparison.origin.explanations.agreeing_step import AgreeingStep
from msprobe_ms.comparison.origin.explanations.calls_across_borders import CallsAcrossBorders
from msprobe_ms.comparison.origin.explanations.dropout import Dropout
from msprobe_ms.comparison.origin.explanations.harmless_inputs import HarmlessInputs
from msprobe_ms.comparison.origin.explanations.inherited_error import InheritedError
from msprobe_ms.comparison.origin.explanations.inner_gradients import InnerGradients
from msprobe_ms.comparison.origin.explanations.later_uses import LaterUses, LaterUsesOfGolden
from msprobe_ms.comparison.origin.explanations.loss_condition import LossCondition
from msprobe_ms.comparison.origin.explanations.other_borders import OtherBorders
from msprobe_ms.comparison.origin.explanations.other_counterparts import OtherCounterparts
from msprobe_ms.comparison.origin.explanations.other_layout import OtherLayout
from msprobe_ms.comparison.origin.explanations.other_order import OtherOrder
from msprobe_ms.comparison.origin.explanations.other_value_at_first import OtherValueAtFirst
from msprobe_ms.comparison.origin.explanations.partial_gradients import PartialGradients
from msprobe_ms.comparison.origin.explanations.passed_on import PassedOn
from msprobe_ms.comparison.origin.explanations.propagated_error import PropagatedError
from msprobe_ms.comparison.origin.explanations.random_numbers import RandomNumbers
from msprobe_ms.comparison.origin.explanations.relu_switching import ReluSwitching
from msprobe_ms.comparison.origin.explanations.rounding import Rounding
from msprobe_ms.comparison.origin.explanations.running_statistics import RunningStatistics
from msprobe_ms.comparison.origin.explanations.unused_indices import UnusedIndices
from msprobe_ms.comparison.origin.explanations.unused_results import UnusedResults
from msprobe_ms.comparison.origin.explanations.updates.aligned_updates import AlignedUpdates
from msprobe_ms.comparison.origin.explanations.updates.optimizer_noise import NearbyNoise, OptimizerNoise
from msprobe_ms.comparison.origin.explanations.updates.optimizer_updates import OptimizerUpdates
from msprobe_ms.comparison.origin.explanations.waves import Waves
from msprobe_ms.comparison.origin.protocols import Explanation, Surveyed
from msprobe_ms.support.translation import tr

#: The first that explains a row whole lets it pass.
EXPLANATIONS: tuple[type[Explanation | Surveyed], ...] = (
    PartialGradients,
    InnerGradients,
    OtherLayout,
    LaterUses,
    UnusedResults,
    OtherOrder,
    AgreeingResults,
    OtherBorders,
    CallsAcrossBorders,
    LaterUsesOfGolden,
    OptimizerNoise,
    AgreeingStep,
    OtherCounterparts,
    PassedOn,
    ReluSwitching,
    OptimizerUpdates,
    RunningStatistics,
    Waves,
    InheritedError,
    Rounding,
    UnusedIndices,
    NearbyNoise,
    PropagatedError,
    AlignedUpdates,
    AgreedAtFirst,
    AgreedWhereMade,
    LossCondition,
    HarmlessInputs,
    OtherValueAtFirst,
    RandomNumbers,
    Dropout,
)

#: Their names, which files hold in English, as messages.
NAMES = (
    tr("agreed where made"),
    tr("growth since the first step"),
    tr("aligned updates"),
    tr("results agree"),
    tr("step agrees"),
    tr("calls across borders"),
    tr("dropout"),
    tr("input without effect"),
    tr("inherited error"),
    tr("inner gradients"),
    tr("later uses agree"),
    tr("condition of the loss"),
    tr("nearby noise"),
    tr("optimizer noise"),
    tr("optimizer updates"),
    tr("other borders"),
    tr("other counterpart"),
    tr("other layout"),
    tr("other order"),
    tr("other value at first"),
    tr("partial gradients"),
    tr("propagated error"),
    tr("random numbers"),
    tr("ReLU switching"),
    tr("rounding"),
    tr("running statistics"),
    tr("waves"),
    tr("index without use"),
    tr("result without use"),
    tr("result of a call inside"),
)
