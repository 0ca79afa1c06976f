"""Least scales of gradients: what cancels in a sum leaves the rounding noise of its terms."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.layer_kinds import Kind, kind_of, plain_name
from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.statistics import element_count, magnitude, root_mean_square, square
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, EntryName, is_update

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
    * So does the gradient of a weight that a function gives out, x being the first that its forward call takes in.
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
            summed = self._summed(entry, item, squares) if item.state != "input" and terms > 0 else 0.0
            floors[item.name] = self._share * max(largest, summed, enclosing)
        return floors

    def _of_update(self, entry: Entry, parsed: EntryName) -> dict[str, float]:
        """The floor of the gradient that an optimizer is given: that of the one which backward gave."""
        module, _, parameter = parsed.name.rpartition(".")
        given = self._parameters_grad.get(module)
        floors = self.of_entry(given)
        named = {item.path: floors.get(item.name, 0.0) for item in (given.items if given is not None else ())}
        return {item.name: named.get((parameter,), 0.0) for item in entry.items if item.path == ("gradient",)}

    def _summed(self, entry: Entry, item: Item, squares: float) -> float:
        """The rms of a sum over the arriving gradient in which nothing cancels; 0 for what is no such sum."""
        parsed, shape = entry.parsed, item.shape if isinstance(item.shape, tuple) else ()
        if len(shape) <= 1:
            # ‖g‖₂ / sqrt(count) = sqrt(terms / count) · rms(g)
            return math.sqrt(squares / max((1, *shape)))
        if parsed is not None and parsed.direction == PARAMETERS_GRAD and shape[0] > 0:
            return self._inputs.get(parsed.name, 0.0) * math.sqrt(squares / shape[0])
        return self._of_weight(entry, item, shape) * math.sqrt(squares)

    def _of_weight(self, entry: Entry, item: Item, shape: tuple[int, ...]) -> float:
        """rms(x) / sqrt(rows) of the weight whose gradient a linear function gives out; 0 for what is none."""
        parsed = entry.parsed
        if parsed is None or parsed.is_module or item.path == ("0",) or kind_of(parsed) is not Kind.LINEAR:
            return 0.0
        forward = self._entries.get(str(parsed.in_direction(FORWARD)))
        first = next((each for each in _sized(forward) if each[2].state == "input"), None) if forward else None
        if first is None or not element_count(item):
            return 0.0
        _, rms, taken = first
        # A convolution has a row for each channel it gives out; a product of matrices sums over the last axis of x.
        summed = taken.shape[-1:] if isinstance(taken.shape, tuple) else ()
        is_convolution = plain_name(parsed).startswith("conv")
        return rms / math.sqrt(shape[0] if is_convolution else element_count(item) / max((1, *summed)))

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
