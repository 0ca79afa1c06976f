"""Say how far apart two healthy tensors may be: the one table, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from msprobe_ms.arrays.dtypes import Dtype, coarser, parse_dtype
from msprobe_ms.comparison.model import Tables

#: Roundings a healthy tensor carries, in machine epsilons of its dtype. A chain of n roundings is off by about
#: sqrt(n) epsilons of its largest terms (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., §2.8): about
#: a hundred for the layers and reduction lengths of a net in fp32 and fp64. Measured between MindSpore and PyTorch on
#: one CPU: 7 epsilons forward, 54 in gradients; the mildest fault known, tanh-gelu for exact gelu, is 370. Narrow
#: floats are accumulated in fp32 and rounded at each operation only, so a few of their own epsilons.
_ROUNDINGS: Mapping[str, float] = MappingProxyType(
    {
        "float64": 96.0,
        "float32": 96.0,
        "complex128": 96.0,
        "complex64": 96.0,
        "complex32": 4.0,
        "float16": 4.0,
        "bfloat16": 4.0,
        "float8_e4m3fn": 2.0,
        "float8_e4m3fnuz": 2.0,
        "float8_e5m2": 2.0,
        "float8_e5m2fnuz": 2.0,
        "hifloat8": 4.0,  # its mantissa has three bits near 1 and fewer away from it
    }
)


@dataclass(frozen=True)
class Tolerances:
    """Bounds on ``Row.deviation``; override with ``dataclasses.replace``.

    ``roundings``         epsilons a float tensor may be off by, by dtype name (the coarser of the two counts)
    ``gradients``         how many times more roundings gradients carry: they have been through the net twice
    ``same_framework``    share of it left when one framework wrote both sides (same kernels, other device at most)
    ``statistics``        least bound in statistics mode, whatever the dtype: they may be rounded to fp32 on the way
    ``gradient_floor``    a gradient is a sum of many terms; what cancels in it leaves their rounding noise. So it is
                          held against at least this share of its terms' size (``GradientFloors``; 0 turns it off)
    ``carried``           how many times the deviation of narrower floats before it a tensor may show (``Carried``)
    """

    roundings: Mapping[str, float] = field(default_factory=lambda: _ROUNDINGS)
    gradients: float = 5.0
    same_framework: float = 0.5
    statistics: float = 1e-6
    gradient_floor: float = 1.0
    carried: float = 10.0

    def bound(
        self, target_dtype: str | None, golden_dtype: str | None, *, exact: bool, same_framework: bool, gradient: bool
    ) -> float:
        """The deviation two tensors of these dtypes may show; ``exact`` when every element was compared."""
        dtype = coarser(target_dtype, golden_dtype)
        share = (self.same_framework if same_framework else 1.0) * (self.gradients if gradient else 1.0)
        least = 0.0 if exact else self.statistics
        return max(least, self.roundings.get(dtype.name, 1.0) * dtype.epsilon * share)


#: The share of calls whose floats are of another width than their counterparts' up to which that is the exception.
EXCEPTION = 0.1


def of_several_widths(tables: Tables) -> bool:
    """Whether these dumps hold floats of several widths."""
    return len({parse_dtype(sort[2]).epsilon for table in tables for sort in table.known_sorts} - {0.0}) > 1


class Carried:
    """Precision once lost stays lost: what was computed from float16 is no more exact for being cast to float32.

    Fed with rows in the order of execution. A tensor may then be as far apart as the narrower floats before it were,
    times ``Tolerances.carried``; never further than those might have been. Narrow floats that were equal carry nothing.
    What one side alone computes in narrower floats earns no tolerance, but ``one_sided``: where most of it does.
    """

    def __init__(self, tolerances: Tolerances, *, one_sided: bool = False) -> None:
        self._tolerances = tolerances
        self._one_sided = one_sided
        #: The largest deviation that agreed, by dtype.
        self._largest: dict[Dtype, float] = {}

    def note(self, target_dtype: str | None, golden_dtype: str | None, deviation: float) -> None:
        """A row of these dtypes agrees, with this deviation."""
        if not self._one_sided and parse_dtype(target_dtype).epsilon != parse_dtype(golden_dtype).epsilon:
            return
        dtype = coarser(target_dtype, golden_dtype)
        self._largest[dtype] = max(deviation, self._largest.get(dtype, 0.0))

    def bound(
        self, target_dtype: str | None, golden_dtype: str | None, *, same_framework: bool, gradient: bool
    ) -> float:
        """What narrower floats before it explain of a deviation of these dtypes; 0 for whole numbers and bools."""
        if not (parse_dtype(target_dtype).epsilon and parse_dtype(golden_dtype).epsilon):
            return 0.0
        own = coarser(target_dtype, golden_dtype).epsilon
        bound = self._tolerances.bound
        return max(
            (
                min(
                    self._tolerances.carried * largest,
                    bound(dtype.name, dtype.name, exact=True, same_framework=same_framework, gradient=gradient),
                )
                for dtype, largest in self._largest.items()
                if dtype.epsilon > own
            ),
            default=0.0,
        )
