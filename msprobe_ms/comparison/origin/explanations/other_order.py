"""Results of containers in another order: channels are shuffled where a block ends here, where the next begins there.

Such borders show in what comes later: layers take in what their counterparts do, up to the last result. Where one takes
in what nothing computed before it explains, or the network gives it out, a container before it errs: any, as half of
the channels may pass a block by; the last, where several of its class stand in another order and the layers behind them
took in what they should. A call that errs itself says nothing against what came before it, and nothing tells of what
comes behind it: of what a normalisation gives out the statistics agree whatever its elements are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import Fingerprints, fingerprints
from msprobe_ms.comparison.measuring.deviation import four_statistics_deviation
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.nodes import Node, error_ratio, is_of_another_form
from msprobe_ms.comparison.origin.propagation import DRIFT, GAIN_IN_DOUBT
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.comparison.statistics import element_count
from msprobe_ms.comparison.terms import GOLDEN

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: The least deviation of elements beside others: of two orders without a pattern 1.4, but for a common mean.
_FAR = 0.3
#: How far apart the statistics may be of what lies in another order: three times what a layer in bfloat16 is.
_NEAR = 0.03
#: Times that results may be further apart than a parameter that updates set apart.
_DRIFT = 2.0
#: Containers of a class from which on their borders lie elsewhere; an error in half of the channels shows in two.
_SEVERAL = 3


class OtherOrder(Surveyed):
    """What containers give out in another order, where all layers take in what they should; its uses and gradients."""

    name: ClassVar[str] = "other order"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        calls = [node for node in evidence.nodes if node.is_module_call]
        containers = {node for node in calls if any(child.is_module for child in node.children)}
        if not any(_far(node.rows("output")) for node in containers):
            return
        layers, largest, jumped, errs, ordered = 0, _DRIFT * evidence.drift, False, False, dict[Node, int]()
        for node in calls:
            given = _compared(node.rows("output"))
            if node in containers:
                if others := [row for row in _far(given) if _is_in_other_order(row, largest)]:
                    ordered[node] = layers
                    given = [row for row in given if row not in others]
            else:
                taken = _compared(node.rows("input"))
                if _jumps(taken, largest) and not node.comes_out_right:
                    jumped = True
                    break
                layers += bool(taken)
                if errs := _jumps(given, max(largest, _furthest(taken))):
                    break
                given += taken
            largest = max(largest, _furthest(given))
        used = [node for node, before in ordered.items() if before < layers]
        if jumped or (not errs and _jumps(_given_at_last(calls), largest)):
            used = _of_a_kind(used)
        self._let_pass_of(used, calls, largest)

    def _let_pass_of(self, containers: Sequence[Node], calls: Sequence[Node], largest: float) -> None:
        """Let pass what these give out, wherever it is taken in, and the gradients of both."""
        passed = set[Fingerprints]()
        for node in containers:
            for row in _far(node.rows("input", "output")):
                if _is_in_other_order(row, largest):
                    self._let_pass_with_gradient(row, node)
                    if row.state == "output":
                        passed.add(fingerprints(row))
        for node in calls if passed else ():
            for row in _far(node.rows("input")):
                if None not in (both := fingerprints(row)) and both in passed:
                    self._let_pass_with_gradient(row, node)

    def _let_pass_with_gradient(self, row: Row, node: Node) -> None:
        """Let a value pass, and the gradient of it: of a result what backward takes in, of an input what it makes."""
        self.let_pass(row, node)
        if (back := node.gradients) is not None:
            for gradient in _far(back.rows("input" if row.state == "output" else "output")):
                if _is_in_other_order(gradient, _NEAR):
                    self.let_pass(gradient, back)


def _of_a_kind(nodes: Sequence[Node]) -> list[Node]:
    """Those of which there are several of a class, on both sides."""
    number = Counter(map(_classes, nodes))
    return [node for node in nodes if number[_classes(node)] >= _SEVERAL]


def _classes(node: Node) -> tuple[str, str]:
    golden = node.pair.golden.parsed if node.pair.golden is not None else None
    return (node.parsed.class_name if node.parsed else "", golden.class_name if golden else "")


def _far(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if error_ratio(row) > 1 and _FAR < (row.deviation or 0.0) < math.inf]


def _compared(rows: Iterable[Row]) -> list[Row]:
    """The rows that tell whether a layer takes in, or gives out, what its counterpart does."""
    return [row for row in rows if row.deviation is not None and row.is_tensor(GOLDEN) and not is_of_another_form(row)]


def _furthest(rows: Iterable[Row]) -> float:
    return max((row.deviation or 0.0 for row in rows if error_ratio(row)), default=0.0)


def _jumps(rows: Iterable[Row], largest: float) -> bool:
    """Whether a value is further apart than a computation makes of what is ``largest`` apart."""
    return any(
        error_ratio(row) > 1 and (row.deviation or 0.0) > GAIN_IN_DOUBT * max(row.tolerance or 0.0, largest)
        for row in rows
    )


def _given_at_last(calls: Sequence[Node]) -> list[Row]:
    """What the last of the outermost modules gives out."""
    last = next((node for node in reversed(calls) if node.parent is None), None)
    return _compared(last.rows("output")) if last is not None else []


def _is_in_other_order(row: Row, largest: float) -> bool:
    """Whether there are as many elements, whose statistics are no further apart than all that was computed so far."""
    target, golden = row.target, row.golden
    if target is None or golden is None or element_count(target) != element_count(golden):
        return False
    apart = four_statistics_deviation(target, golden)
    return apart is not None and apart <= min(_NEAR, DRIFT * max(row.tolerance or 0.0, largest))
