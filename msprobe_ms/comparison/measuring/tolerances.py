"""Say how far apart two healthy tensors may be: the one table, where its numbers come from, and floors of gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from msprobe_ms.arrays.dtypes import Dtype, coarser, parse_dtype
from msprobe_ms.comparison.model import Pair, Tables
from msprobe_ms.comparison.statistics import element_count, magnitude, root_mean_square, square
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, EntryName, is_update

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


#: Share of the gradient arriving at the enclosing module that one inside it is held against. Measured: rounding leaves
#: 1e-7 of it where a gradient cancels wholly; held against a hundredth of it that is a fifth of the bound.
_ENCLOSING = 0.01


class GradientFloors:
    """Least scales of gradients, by golden item name: what cancels in a sum leaves the rounding noise of its terms.

    * An item of a gradient entry is held against at least ``share`` of the largest rms among the entry's larger
      tensors.
    * A parameter's gradient sums terms of the gradient g that arrives at its module, times the module's input x. They
      may cancel (an attention's key gets gradients that sum to 0 over the tokens: its bias, and its weight where the
      tokens are alike). So it is held against at least the size such a sum has when nothing cancels:
      ‖g‖₂ / sqrt(count) for a vector of ``count`` elements, rms(x) · ‖g‖₂ / sqrt(rows) for a weight of ``rows`` rows.
    * What arrives at a module came through the code of the module around it, where it may cancel too (a softmax over
      like values): g is held against at least ``_ENCLOSING`` of the rms of what arrives there; and so is g where a
      function inside the module takes it in.
    """

    def __init__(self, golden: Mapping[str, Entry], share: float) -> None:
        self._share = share
        self._entries = golden
        #: Module name → sum of squares and elements of the gradients that arrive at it, over its calls.
        self._arriving: dict[str, tuple[float, int]] = {}
        #: Module name → largest rms of the first float tensor it takes in, over its calls.
        self._inputs: dict[str, float] = {}
        #: Module name → the gradients of its parameters.
        self._parameters_grad: dict[str, Entry] = {}
        for entry in golden.values():
            if entry.parsed is None or not entry.parsed.is_module:
                continue
            name = entry.parsed.name
            if entry.parsed.direction == PARAMETERS_GRAD:
                self._parameters_grad.setdefault(name, entry)
            if entry.parsed.direction == BACKWARD:
                squares, count = self._arriving.get(name, (0.0, 0))
                more_squares, more_count = self._arriving_floored(entry)
                self._arriving[name] = squares + more_squares, count + more_count
            elif entry.parsed.direction == FORWARD:
                # The first is what a weight multiplies; a mask of -1e9 may follow.
                first = next((rms for _, rms, item in _sized(entry) if item.state == "input"), 0.0)
                self._inputs[name] = max(self._inputs.get(name, 0.0), first)

    def of(self, pair: Pair) -> dict[str, float]:
        """The floors of the golden items of one pair; items without one have none."""
        return self.of_entry(pair.golden)

    def of_entry(self, entry: Entry | None) -> dict[str, float]:
        if entry is None or entry.parsed is None or self._share <= 0:
            return {}
        if is_update(entry.parsed):
            return self._of_update(entry, entry.parsed)
        if entry.parsed.direction == PARAMETERS_GRAD:
            squares, terms = self._arriving.get(entry.parsed.name, (0.0, 0))
        elif entry.parsed.direction == BACKWARD:
            squares, terms = self._arriving_floored(entry)
        else:
            return {}
        sized = _sized(entry)
        enclosing = self._enclosing(entry)
        floors = {}
        # The largest rms of any tensor with more elements, by the number of elements.
        larger: dict[int, float] = {}
        largest_of_all = 0.0
        for count, rms in sorted(((count, rms) for count, rms, _ in sized), reverse=True):
            larger.setdefault(count, largest_of_all)
            largest_of_all = max(largest_of_all, rms)
        for count, _, item in sized:
            largest = larger[count]
            summed = self._summed(entry.parsed, item, squares) if item.state != "input" and terms > 0 else 0.0
            floors[item.name] = self._share * max(largest, summed, enclosing)
        return floors

    def _of_update(self, entry: Entry, parsed: EntryName) -> dict[str, float]:
        """The floor of the gradient that an optimizer is given: that of the one which backward gave."""
        module, _, parameter = parsed.name.rpartition(".")
        given = self._parameters_grad.get(module)
        floors = self.of_entry(given)
        named = {item.path: floors.get(item.name, 0.0) for item in (given.items if given is not None else ())}
        return {item.name: named.get((parameter,), 0.0) for item in entry.items if item.path == ("gradient",)}

    def _summed(self, parsed: EntryName, item: Item, squares: float) -> float:
        """The rms of a sum over the arriving gradient in which nothing cancels; 0 for what is no such sum."""
        shape = item.shape if isinstance(item.shape, tuple) else ()
        if len(shape) <= 1:
            # ‖g‖₂ / sqrt(count) = sqrt(terms / count) · rms(g)
            return math.sqrt(squares / max((1, *shape)))
        if parsed.direction == PARAMETERS_GRAD and shape[0] > 0:
            return self._inputs.get(parsed.name, 0.0) * math.sqrt(squares / shape[0])
        return 0.0

    def _enclosing(self, entry: Entry) -> float:
        parent = self._entries.get(entry.parent or "")
        if parent is None or parent.parsed is None or parent.parsed.direction != BACKWARD:
            return 0.0
        if parent.parsed.is_root:  # nothing else encloses its modules, and most are far from where it gives out
            return 0.0
        squares, count = _arriving(parent)
        share = _ENCLOSING * math.sqrt(squares / count) if count else 0.0
        in_function = entry.parsed is not None and not entry.parsed.is_module and parent.parsed.is_module
        return max(share, self._enclosing(parent)) if in_function else share

    def _arriving_floored(self, entry: Entry) -> tuple[float, int]:
        squares, count = _arriving(entry)
        return max(squares, count * square(self._enclosing(entry))), count


def _sized(entry: Entry) -> list[tuple[int, float, Item]]:
    """Elements, rms and item of each float tensor of an entry."""
    return [
        (element_count(item), root_mean_square(item) or 0.0, item)
        for item in entry.items
        if item.kind == "tensor" and parse_dtype(item.dtype).epsilon
    ]


def _arriving(entry: Entry) -> tuple[float, int]:
    """Sum of squares and number of elements of the gradients a backward entry takes in."""
    items = [item for item in entry.items if item.state == "input" and item.kind == "tensor"]
    return sum(square(magnitude(item.norm)) for item in items), sum(map(element_count, items))
