"""The nodes of a comparison: pairs of entries, and how large the error is of what goes in and of what comes out.

The *error ratio* of a row is its deviation over its tolerance: 1 is as far apart as dtype and framework explain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.metrics import COSINE
from msprobe_ms.comparison.fingerprints import fingerprint
from msprobe_ms.comparison.layer_kinds import BOUNDED, Kind, kind_of
from msprobe_ms.comparison.measuring.deviation import holds_fill, is_filled
from msprobe_ms.comparison.model import Effect, Pair, Row
from msprobe_ms.comparison.statistics import have_sketches, no_gradient, non_finite_ends
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy, Side
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import BACKWARD, DEBUG, PARAMETER, PARAMETERS_GRAD, EntryName, is_update

Found = TypeVar("Found")

#: States of what a node gives out.
RESULTS = ("output", "parameters_grad", "debug")


@dataclass(eq=False, slots=True)
class Node:
    """A matched pair of entries, with what judging it needs.

    ``parent``    the nearest enclosing call that is a node
    ``context``   what went into the computation besides this entry's own inputs: a backward node's forward counterpart,
                  the calls whose gradients a parameter gradient sums
    ``gradients``  of a forward call: its backward one
    ``before``    of a save: the one before it
    ``is_loss``   whether it is a save among calls: what gradients are computed of, which do not depend on its value
    ``ratio_in``, ``ratio_parameters``, ``ratio_out``  the largest error ratios of its inputs, parameters and results
    ``is_backward``, ``is_parameter_gradient``  whether it is of backward at all, and a gradient of parameters
    ``is_module``, ``is_module_call``  whether it is a module's call and not a function's, forward or backward; and
                  whether it is a forward one, or what a compiled graph keeps of one
    ``is_save``   whether it is a value without a call: what the script saved, what a compiled graph keeps
    ``is_update``  whether it is what an optimizer made of a parameter
    ``ratio_inside``  the largest error ratio of parameters and results of calls inside it that something explains
    ``ratio_without_effect``, ``ratio_without_effect_inside``  the largest error ratio of its values that differ without
                  effect, which the others leave out; and of those of the calls inside it
    """

    order: int
    pair: Pair
    name: str
    parsed: EntryName | None
    parent: Node | None = None
    children: Sequence[Node] = ()
    context: Sequence[Node] = ()
    ratio_in: float = 0.0
    ratio_parameters: float = 0.0
    ratio_out: float = 0.0
    gradients: Node | None = None
    before: Node | None = None
    is_loss: bool = False
    ratio_inside: float = 0.0
    ratio_without_effect: float = 0.0
    ratio_without_effect_inside: float = 0.0
    is_backward: bool = field(init=False, default=False)
    is_parameter_gradient: bool = field(init=False, default=False)
    is_module: bool = field(init=False, default=False)
    is_module_call: bool = field(init=False, default=False)
    is_save: bool = field(init=False, default=False)
    is_update: bool = field(init=False, default=False)
    #: What has been found of its rows, each of which asks for it: a call may have thousands.
    _known: dict[str, Any] | None = field(init=False, default=None, repr=False)
    _kind: Kind | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if (parsed := self.parsed) is None:
            return
        direction = parsed.direction
        self.is_parameter_gradient = direction == PARAMETERS_GRAD
        self.is_backward = direction == BACKWARD or self.is_parameter_gradient
        self.is_module = parsed.is_module
        self.is_module_call = self.is_module and not self.is_backward
        self.is_save = direction == DEBUG or self.is_kept
        self.is_update = is_update(parsed)

    def measure(self) -> None:
        """Fill the error ratios from the rows."""
        self.forget()
        ratio_in = ratio_parameters = ratio_out = without_effect = 0.0
        for row in self.pair.rows:
            ratio = error_ratio(row)
            if ratio:
                state, explained = row.state, row.explained
                if explained is not None and explained.effect is Effect.NO_EFFECT:
                    without_effect = max(without_effect, ratio)
                elif state == "input":
                    ratio_in = max(ratio_in, ratio)
                elif state == "parameters":
                    ratio_parameters = max(ratio_parameters, ratio)
                else:
                    ratio_out = max(ratio_out, ratio)
        self.ratio_in, self.ratio_parameters, self.ratio_out = ratio_in, ratio_parameters, ratio_out
        if without_effect != self.ratio_without_effect:
            self.ratio_without_effect = without_effect
            for up in self.ancestors():
                up.ratio_without_effect_inside = max(up.ratio_without_effect_inside, without_effect)

    def known(self, name: str, find: Callable[[Node], Found]) -> Found:
        """Return what ``find`` finds of this node's rows, found once under ``name`` until they are explained anew."""
        known = self._known
        if known is None:
            known = self._known = {}
        if name not in known:
            known[name] = find(self)
        found: Found = known[name]
        return found

    def forget(self) -> None:
        """Forget what is known of the rows, of which one was explained."""
        self._known = None

    @property
    def kind(self) -> Kind:
        """What it computes, told once: by then the nodes are connected."""
        if self._kind is None:
            self._kind = self._find_kind()
        return self._kind

    def _find_kind(self) -> Kind:
        kind = Kind.OTHER if self._holds_other_layers else kind_of(self.parsed)
        if kind is Kind.OTHER and self.pair.how == PairedBy.GROUP and self.pair.golden is not None:
            kind = kind_of(self.pair.golden.parsed)  # the last of several calls does not tell what all of them are
        # A dropout of probability 0 draws nothing; what the other side then gives out else is not by right.
        return Kind.OTHER if kind is Kind.RANDOM and any(map(self._passes_on, (TARGET, GOLDEN))) else kind

    @property
    def _holds_other_layers(self) -> bool:
        """Whether layers run inside that its name does not tell of: a net is a RandLANet, a GELU holds a Linear."""
        if self.parsed is None:
            return False
        if self.parsed.is_root:
            return any(child.is_module for child in self.children)
        kind = kind_of(self.parsed)
        return kind in BOUNDED and any(
            child.is_module and any(child.rows("parameters")) and child.kind is not kind for child in self.children
        )

    @property
    def passes_on(self) -> bool:
        """Whether it gives out what it took in, on both sides, and so computes nothing."""
        return all(map(self._passes_on, (TARGET, GOLDEN)))

    def _passes_on(self, side: Side) -> bool:
        taken, given = next(self.rows("input"), None), next(self.rows("output"), None)
        if taken is None or given is None:
            return False
        return (print_in := fingerprint(taken, side)) is not None and print_in == fingerprint(given, side)

    @property
    def is_kept(self) -> bool:
        """A parameter or input of a compiled graph, after it ran."""
        return self.parsed is not None and self.parsed.prefix == PARAMETER

    @property
    def is_part(self) -> bool:
        """A framework's own part of a layer, which users know by the layer alone (``LSTM`` runs ``_DynamicLSTM``)."""
        return self.parent is not None and self.parsed is not None and self.parsed.class_name.startswith("_")

    @property
    def module(self) -> str:
        return self.parsed.name if self.parsed is not None and self.parsed.is_module else self.name

    def rows(self, *states: str) -> Iterator[Row]:
        return (row for row in self.pair.rows if row.state in states)

    @property
    def comes_out_right(self) -> bool:
        """Whether there are results that can be compared and say something, and all of them agree of themselves.

        But those that only one side gives out.
        """
        return self.comes_out_right_but_for(0.0)

    def comes_out_right_but_for(self, drift: float) -> bool:
        """The same where results may deviate by ``drift`` beyond their tolerance."""
        right = []
        for row in self.rows(*RESULTS):
            deviation, tolerance = row.deviation, row.tolerance
            if deviation is None or tolerance is None or (row.misrecorded and _is_of_one_side(row)):
                continue
            if not deviation <= max(tolerance, drift):
                return False
            right.append(row)
        return any(map(_tells, right))

    @property
    def takes_in_compared_tensors(self) -> bool:
        """Whether a tensor that it takes in was compared."""
        return self.known("takes in compared tensors", _takes_in_compared_tensors)

    @property
    def takes_in_fills(self) -> bool:
        """Whether a mask has filled an input, beside which neither statistics nor sketches show the other elements."""
        return self.known("takes in fills", _takes_in_fills)

    @property
    def deviation(self) -> float:
        """The largest deviation beyond its tolerance."""
        if max(self.ratio_in, self.ratio_parameters, self.ratio_out) <= 1:
            return 0.0
        return max((row.deviation or 0.0 for row in self.pair.rows if error_ratio(row) > 1), default=0.0)

    @property
    def ratio_before(self) -> float:
        """The largest error ratio of anything the outputs are computed from but parameters that can be blamed."""
        return max((self.ratio_in, self.ratio_without_effect, *map(_largest_ratio, self.context)))

    @property
    def ratio_in_of_one_form(self) -> float:
        """The largest error ratio of the inputs that can be compared, as a mask in another form cannot."""
        return self.ratio_in if self.ratio_in <= 1 else self.known("ratio in of one form", _ratio_in_of_one_form)

    @property
    def ratio_out_of_one_form(self) -> float:
        """The same of the results."""
        return self.ratio_out if self.ratio_out <= 1 else self.known("ratio out of one form", _ratio_out_of_one_form)

    @property
    def ratio_before_of_one_form(self) -> float:
        """The largest error ratio of what the outputs are computed from, as far as that can be compared."""
        before = self.ratio_before
        if before <= 1:
            return before
        return max((self.ratio_in_of_one_form, self.ratio_without_effect, *map(_largest_of_one_form, self.context)))

    @property
    def ratio_taken(self) -> float:
        """The largest error ratio of all that explains the outputs."""
        inside = max(self.ratio_inside, self.ratio_without_effect_inside)
        if self.parsed is not None and self.parsed.is_root:  # it takes in data: all rounding comes from inside
            inside = max((inside, *(min(child.ratio_out, 1.0) for child in self.children)))
        before = self.ratio_before_of_one_form if self.is_module_call else self.ratio_before
        return max(before, self.ratio_parameters, inside)

    def ancestors(self) -> Iterator[Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def _tells(row: Row) -> bool:
    """Whether it holds tensors of floats that are not all alike."""
    return row.golden is not None and row.golden.maximum != row.golden.minimum and is_of_floats(row)


def is_of_floats(row: Row) -> bool:
    """Whether the golden's is a tensor of floats."""
    return row.golden is not None and row.golden.kind == "tensor" and parse_dtype(row.golden.dtype).epsilon > 0


def is_of_whole_numbers(row: Row) -> bool:
    """Whether these are indices or counts, which no update of parameters sets apart."""
    return row.golden is not None and row.golden.kind == "tensor" and not parse_dtype(row.golden.dtype).epsilon


def _is_of_one_side(row: Row) -> bool:
    """Whether one of the two is None."""
    return "null" in (row.target and row.target.kind, row.golden and row.golden.kind)


def _takes_in_compared_tensors(node: Node) -> bool:
    return any(row.deviation is not None and row.is_tensor(GOLDEN) for row in node.rows("input"))


def _takes_in_fills(node: Node) -> bool:
    filled = (row for row in node.rows("input") if (ends := row.extremes(GOLDEN)) is not None and is_filled(*ends))
    return not all(map(is_measured, filled))


def _ratio_in_of_one_form(node: Node) -> float:
    return _ratio_of_one_form(node.rows("input"))


def _ratio_out_of_one_form(node: Node) -> float:
    return _ratio_of_one_form(node.rows(*RESULTS))


def _ratio_of_one_form(rows: Iterable[Row]) -> float:
    largest = 0.0
    for row in rows:
        ratio = error_ratio(row)
        if ratio > largest and not is_of_another_form(row):
            largest = ratio
    return largest


def _largest_ratio(node: Node) -> float:
    given = 0.0 if node.is_backward else node.ratio_out
    return max(node.ratio_in, node.ratio_parameters, node.ratio_without_effect, given)


def _largest_of_one_form(node: Node) -> float:
    given = 0.0 if node.is_backward else node.ratio_out_of_one_form
    return max(node.ratio_in_of_one_form, node.ratio_parameters, node.ratio_without_effect, given)


def error_ratio(row: Row) -> float:
    """Deviation of a row over its tolerance; 0 where there is nothing to compare or the record alone differs."""
    deviation, tolerance = row.deviation, row.tolerance
    if not deviation or tolerance is None:
        return 0.0
    explained = row.explained
    if explained is not None:
        if explained.effect is Effect.NO_ERROR:
            return 0.0
        if explained.effect is Effect.HOLDS:
            tolerance = explained.up_to
    return deviation / tolerance if tolerance > 0 else math.inf


def is_measured(row: Row) -> bool:
    """Whether the deviation was measured in files."""
    return row.measured is not None and isinstance(row.measured.get(COSINE), float)


def is_of_all_elements(row: Row) -> bool:
    """Whether the deviation is that of all elements: of their files, or as sketches estimate it."""
    return is_measured(row) or _is_estimated(row)


def is_compared_whole(node: Node) -> bool:
    """Whether a module takes in tensors, all elements of each of which were compared, with their own counterparts."""
    rows = [row for row in node.rows("input") if row.is_tensor(TARGET)]
    return node.is_module_call and bool(rows) and all(map(_tells_of_error, rows)) and node.ratio_in < math.inf


def _tells_of_error(row: Row) -> bool:
    """Whether all elements were compared, and stand beside their own counterparts: of others no drift is known."""
    beside_others = row.explained is not None and row.explained.effect is Effect.NO_ERROR
    return is_of_all_elements(row) and not beside_others


def _is_estimated(row: Row) -> bool:
    numbers = row.numbers
    if numbers is not None and not all(table.has_sketches for table in numbers[0]):  # no item need be made
        return False
    return row.target is not None and row.golden is not None and have_sketches(row.target, row.golden)


def is_of_another_form(row: Row) -> bool:
    """Whether a tensor is there in a form that cannot be compared with its counterpart's, or is filled: a mask."""
    if not row.matched:
        return False
    if row.deviation != math.inf:
        ends = row.extremes(GOLDEN)
        return ends is not None and holds_fill(*ends)
    # But for what differs from zeros, or is not finite on one side, unless by a mask.
    target, golden = row.target, row.golden
    assert target is not None and golden is not None
    if any(map(non_finite_ends, (target, golden))):
        return row.state == "input" and _is_mask(target) and _is_mask(golden)
    return not no_gradient(golden)


def _is_mask(item: Item) -> bool:
    """Whether a tensor says of elements that they count or do not: by 0 and 1, or by what is added to hide them."""
    return {item.maximum, item.minimum} <= {0, 1} or holds_fill(item.maximum, item.minimum)


def worst(rows: Iterable[Row]) -> Row | None:
    """The row with the largest error ratio; None where there are no rows."""
    return max(rows, key=error_ratio, default=None)
