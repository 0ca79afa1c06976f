"""Why a node is an origin, in a sentence with the figures."""

from __future__ import annotations

import math
from functools import cached_property

from msprobe_ms.comparison.model import Metrics, Origin, Row
from msprobe_ms.comparison.origin.explanations.dropout import Load, Masked, masked
from msprobe_ms.comparison.origin.layer_kinds import Kind
from msprobe_ms.comparison.origin.nodes import RESULTS, Node, strain, worst
from msprobe_ms.comparison.origin.precision import is_of_two_widths
from msprobe_ms.comparison.origin.unrecorded_code import Between
from msprobe_ms.comparison.statistics import odd_word
from msprobe_ms.dump.model import Item

_SEED = "seed both sides alike (seed_all), or take dropout out (seed_all with rm_dropout) and dump both again"
_RANDOM = f"it draws random numbers, so its result differs by right, and what follows it cannot be told: {_SEED}"
_MASKED = (
    "where neither side is zero they agree, and which places are zero on one side alone is chance: probably dropout, "
    "called as a function in code that was not recorded; it differs by right, and what follows it cannot be told: "
    f"{_SEED}"
)
_PERHAPS_MASKED = (
    "; the figures differ no more than two random masks make them: if dropout is called there as a function, "
    f"it differs by right: {_SEED}"
)
_COLLECTIVE = "what this rank hands in agrees, so another rank's share differs: look there"


class Reasons:
    """Tells origins, given all nodes of the comparison, what lies between them and whether updates have been.

    ``load`` gives the tensors of a row, where they were recorded.
    """

    def __init__(self, nodes: list[Node], between: Between, trained: bool, load: Load | None = None) -> None:
        self._nodes, self._between, self._trained, self._load = nodes, between, trained, load

    def parameter(self, node: Node, more: bool) -> Origin:
        """A parameter that differs; ``more``: what the module gives out differs by more than it explains."""
        row = worst(node.rows("parameters"))
        assert row is not None
        besides = ""
        if more and (out := worst(node.rows("output"))) is not None:
            besides = f"; {figures(out)}, which is more than the parameter explains: look at the layer's settings, too"
        reason = (
            f"its inputs agree, but its parameter differs before the computation: {figures(row)}"
            f"{self._other_parameters(node)}; look at initialisation and checkpoint loading, in later steps at the "
            f"optimizer, its learning rate and the gradients of the step before{besides}"
        )
        if random := self._random_operation():
            reason += f"; {random} draws random numbers, so that gradients of earlier steps differ by right: {_SEED}"
            return origin_at(row, reason, "random")
        return origin_at(row, reason, "parameter")

    def result(self, node: Node) -> Origin:
        """What the node gives out."""
        row = worst(node.rows(*RESULTS))
        assert row is not None
        if node.is_kept:
            return origin_at(row, f"the graph keeps another value, though all its kernels agree: {figures(row)}")
        if node.is_save:
            return origin_at(row, f"the saved value differs: {figures(row)}; {_what_was_saved_before(node)}")
        reason = f"{_what_agrees(node)}, {figures(row)}"
        if node.kind is Kind.RANDOM:
            return origin_at(row, f"{reason}; {_RANDOM}", "random")
        if node.kind is Kind.COLLECTIVE:
            return origin_at(row, f"{reason}; {_COLLECTIVE}{_around(node)}", "collective")
        # Code of the user's own, a module that calls others; where functions are recorded dropout has its own entry.
        own = bool(node.children) and all(child.parsed and child.parsed.is_module for child in node.children)
        random = masked(row, self._load) if own and not node.is_backward else Masked.NO
        if random is Masked.PROBABLY:
            return origin_at(row, f"{reason}; {_MASKED}", "random")
        reason += f"{_alone(node)}{self._reordered(node)}{self._inside(node)}{_around(node)}"
        return origin_at(row, f"{reason}{_PERHAPS_MASKED if random is Masked.PERHAPS else ''}")

    def width(self, node: Node) -> Origin:
        """A float dtype of another width than the twin's."""
        row = next(filter(is_of_two_widths, node.rows("output")))
        assert row.target is not None and row.golden is not None
        item, taken = row.target, "what it takes in is of one dtype on both sides"
        if any(map(is_of_two_widths, node.rows("input"))):
            taken = "the call around it takes in one dtype on both sides"
        reason = (
            f"{taken}, but its {item.suffix} is {item.dtype} against {row.golden.dtype}, which hardly any other call's "
            f"is: it alone computes in another precision; {figures(row)}{_around(node)}"
        )
        return origin_at(row, reason, "precision")

    def arrival(self, node: Node) -> Origin:
        """An input that differs though nothing computed before it does."""
        row = next((row for row in node.rows("input") if strain(row) > 1), None) or worst(node.rows("input"))
        assert row is not None
        random = Masked.NO if node.is_backward else masked(row, self._load)
        if random is Masked.PROBABLY:
            return origin_at(
                row, f"{figures(row)}, though nothing before it that was compared differs; {_MASKED}", "random"
            )
        if calls := self._between.calls(node.pair):
            before = "though nothing before it that was compared differs"
            source = f"calls without a twin come right before it: {calls}: look there, or pair them by a mapping"
        else:
            before = "though nothing recorded before it differs"
            if node.is_backward:
                source = "the gradient differs on arrival: look at the loss and at what follows this node"
            else:
                source = "it comes from outside: input data, a weight, an argument, or code that was not recorded"
            if places := self._between.places(node, row):
                source += f"; {places}"
            if not row.measured and not node.is_backward and self._between.made(node, row):
                source += "; figures do not show the order of elements: what was made before may agree in them alone"
        if random is Masked.PERHAPS and self._between.made(node, row):
            source += _PERHAPS_MASKED
        return origin_at(row, f"{figures(row)}, {before}; {source}{_around(node)}", "outside")

    @cached_property
    def _holders(self) -> set[str]:
        """Modules with parameters."""
        return {each.module for each in self._nodes if any(True for _ in each.rows("parameters"))}

    def _other_parameters(self, node: Node) -> str:
        """How many modules it shares this with: one is a slip, all are an update."""
        holders = self._holders
        others = {each.module for each in self._nodes if each.strain_parameters > 1} - {node.module}
        return (
            f" (so do parameters of {len(others)} of the {len(holders) - 1} other modules with parameters)"
            if others
            else ""
        )

    def _random_operation(self) -> str:
        """A random operation that differs, where the parameters have been through updates; "" if there is none."""
        found = (node.name for node in self._nodes if node.strain_out > 1 and node.kind is Kind.RANDOM)
        return next(found, "") if self._trained else ""

    def _reordered(self, node: Node) -> str:
        """That figures do not show the order of elements, where it decides what comes out."""
        inputs = list(node.rows("input"))
        if node.kind is not Kind.LINEAR or not inputs or inputs[0].measured:
            return ""
        weight = next(filter(_is_matrix, (*node.rows("parameters"), *inputs[1:])), None)
        places = self._between.made(node, inputs[0])
        looks = [
            f"at that of {weight.golden.suffix} (transposed, permuted)" if weight and weight.golden else "",
            f"at that of {inputs[0].golden.suffix}, made {places}" if places and inputs[0].golden else "",
        ]
        look = " and ".join(filter(None, looks))
        return f"; figures do not show the order of elements: look {look} as well" if look else ""

    def _inside(self, node: Node) -> str:
        """What the calls recorded inside an origin say: that all agree, or where the difference enters."""
        for child in node.children:
            row = worst(child.rows("input"))
            if row is not None and strain(row) > 1 and row.target is not None:
                calls = self._between.calls(child.pair)
                after = f", right after calls without a twin: {calls}" if calls else ""
                places = "" if calls else self._between.places(child, row)
                return f"; inside it the difference shows first at {row.target.name}{after}{places and f': {places}'}"
        number = len(node.children)
        if number and (calls := self._between.calls_inside(node.pair)):
            agree = (
                "1 call with a twin inside it agrees" if number == 1 else f"{number} calls with a twin inside it agree"
            )
            return f"; the {agree}; without one stand {calls}: look there first, or map them"
        if number == 1:
            return "; the 1 call recorded inside it agrees: look at the code before and after it"
        if number:
            return f"; the {number} calls recorded inside it agree: look at the code between and after them"
        return ""


def _is_matrix(row: Row) -> bool:
    """Whether both sides hold a matrix, or more, whose figures agree."""
    shape = row.golden.shape if row.golden is not None else None
    return row.matched and not row.differs and isinstance(shape, tuple) and len(shape) > 1


def _what_agrees(node: Node) -> str:
    if node.is_parameter_gradient:
        return "the layer's inputs and the gradients that reach it agree, its parameter gradient does not"
    margin = "exactly" if node.strain_in == 0 else f"to {node.strain_in:.2g} of the tolerance"
    return f"its inputs agree {margin}, its output does not"


def _what_was_saved_before(node: Node) -> str:
    if node.before is None:
        return "nothing was saved before it"
    margin = "exactly" if node.strain_in == 0 else f"to {node.strain_in:.2g} of the tolerance"
    return f"what was saved before it agrees {margin}: look at the code after {node.before.name} was saved"


def figures(row: Row) -> str:
    item = row.target or row.golden
    # What a save holds may be the tensor itself, with no place of its own.
    suffix = (item.suffix if item is not None else "") or "it"
    target, golden = row.target, row.golden
    if target is not None and golden is not None and "value" in (target.kind, golden.kind):
        return f"{suffix} is {target.maximum} against {golden.maximum}"
    if target is not None and golden is not None and target.shape != golden.shape:
        return f"{suffix} has shape {_shape(target.shape)} against {_shape(golden.shape)}"
    if row.deviation == math.inf and target is not None and golden is not None:
        return _beyond_measure(suffix, target, golden)
    return f"{suffix} deviates by {row.deviation:.3g} (tolerance {row.tolerance:.3g})"


def _beyond_measure(suffix: str, target: Item, golden: Item) -> str:
    mine, theirs = odd_word(target), odd_word(golden)
    if mine and not theirs:
        return f"{suffix} holds {mine}, the golden's is finite"
    if theirs and not mine:
        return f"{suffix} is finite, the golden's holds {theirs}"
    if target.md5 != golden.md5 and None not in (target.md5, golden.md5):
        return f"the checksums of {suffix} differ"
    return f"{suffix} differs beyond measure"


def required_line(required: float, tolerance: float | None) -> str:
    """The bound on its deviation that a value agrees under, and how many times its tolerance that is; "" if no more."""
    if tolerance is not None and required <= tolerance:
        return ""
    times = f", {_rounded_up(required / tolerance)} times its tolerance" if tolerance else ""
    return f"this value agrees under a bound of {_rounded_up(required)} on its deviation{times}"


def _rounded_up(value: float) -> str:
    """Three digits, never less than the value."""
    text = f"{value:.2e}"
    if float(text) < value:
        text = f"{value * 1.005:.2e}"
    return f"{float(text):.3g}"


def _shape(shape: object) -> str:
    return str(list(shape)) if isinstance(shape, tuple) else str(shape)


def _alone(node: Node) -> str:
    """Parameters of one side only, which no figures tell of."""
    for name, rows in (
        ("target", [row.target for row in node.rows("parameters") if row.golden is None]),
        ("golden", [row.golden for row in node.rows("parameters") if row.target is None]),
    ):
        if rows:
            names = ", ".join(item.suffix for item in rows if item is not None)
            return f"; {names} of the {name} stood beside nothing and could not be compared"
    return ""


def _around(node: Node) -> str:
    # A dump of functions or kernels names modules that have no entries in it.
    target = node.pair.target
    around = node.parent.name if node.parent is not None else target.parent if target is not None else None
    if around is None or (node.parsed is not None and node.parsed.is_module):
        return ""
    return f"; called in {around}"


def origin_at(row: Row, reason: str, kind: str = "computation") -> Origin:
    """``required_tolerance`` is what the row deviates by: up to there it would have been held to agree."""
    assert row.target is not None and row.golden is not None
    metrics: Metrics = dict(row.metrics)
    metrics["deviation"], metrics["tolerance"] = row.deviation, row.tolerance
    return Origin(row.target.name, row.golden.name, row.target.state, reason, metrics, kind, row.deviation)
