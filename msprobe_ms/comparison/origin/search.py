"""Where error begins: the nodes, in execution order, that give out more error than what they take in explains.

What a node differs by is measured in tolerances (its *strain*: deviation / tolerance, 1 = as far apart as dtype and
framework explain). A node is an origin when what it gives out is strained beyond ``expected.bound`` of what it takes
in, so that a drift that crosses the tolerance by degrees is none. Difference is inherited when an origin lies inside
the node, or when its inputs already differ. Two things have no node to blame and are origins of their own: an input
that differs although nothing computed before it does (data, a weight, code that was not recorded), and a parameter that
differs before the step has computed anything with it.

Random operations differ by right. They are told, as origins of kind ``random``, and nobody's fault.

A record can be wrong where the computation is right: when every later node that takes in the very tensor an output
recorded finds it to agree, the difference is the record's and no origin (tools that record the gradient of
``cross_entropy`` with respect to its inner log-softmax leave such entries).
"""

from __future__ import annotations

from collections.abc import Sequence

from msprobe_ms.comparison.model import Origin, Pair
from msprobe_ms.comparison.origin.drift import drift
from msprobe_ms.comparison.origin.explanations.dropout import Load
from msprobe_ms.comparison.origin.explanations.inner_gradients import refute_last_nodes
from msprobe_ms.comparison.origin.explanations.optimizer_noise import forgive_parameters, updated
from msprobe_ms.comparison.origin.explanations.partial_gradients import refute_parts
from msprobe_ms.comparison.origin.inheritance import tell_inheritance
from msprobe_ms.comparison.origin.layer_kinds import Kind
from msprobe_ms.comparison.origin.missing_gradients import find_missing_gradients
from msprobe_ms.comparison.origin.nodes import Node, nodes_of, strain
from msprobe_ms.comparison.origin.precision import odd_widths
from msprobe_ms.comparison.origin.propagation import GAIN, GAIN_IN_DOUBT, added, bound, rest_of_equals
from msprobe_ms.comparison.origin.reasons import Reasons
from msprobe_ms.comparison.origin.unrecorded_code import Between
from msprobe_ms.dump.model import Entry

#: Inputs strained beyond 1 by no more than this may still be drift; a node that multiplies it is to blame all the same.
_DRIFT = 3.0
#: Times that what a module gives out is strained more than its parameter before another fault must be in it.
_PARAMETER = 100.0
#: Layers that were equal to the bit from which on the two dumps are of one machine.
_EQUALS = 3


def find_origins(pairs: list[Pair], golden: Sequence[Entry] = (), load: Load | None = None) -> list[Origin]:
    """The origins among measured pairs, in execution order; [] when the two dumps agree.

    ``golden``: all entries of the golden dump in execution order, to tell which of them lie unpaired before an origin.
    ``load``: the tensors of a row, where elements were recorded.
    Fills ``Row.refuted`` and ``Row.inherited_from``.
    """
    refute_parts(pairs)
    refute_last_nodes(pairs)
    nodes = nodes_of(pairs)
    if trained := updated(nodes):
        forgive_parameters(nodes, load)
    search = _Search(Reasons(nodes, Between(nodes, pairs, golden), trained, load), odd_widths(nodes), trained)
    for node in nodes:
        if not search.visit(node):
            break
    named = {origin.target for _, origin in search.origins.values()}
    lost = [each for each in find_missing_gradients(pairs) if each[1].target not in named]
    if not search.origins and not lost and (drifted := drift(nodes, switched=search.switched > 0, trained=trained)):
        return drifted
    tell_inheritance(nodes, {node: node.name for node in search.origins})
    return [origin for _, origin in sorted((*search.origins.values(), *lost), key=lambda each: each[0])]


def apart(found: list[Origin]) -> tuple[list[Origin], list[Origin]]:
    """The origins of error, and the random operations, which are nobody's fault."""
    random = [origin for origin in found if origin.kind == "random"]
    return [origin for origin in found if origin.kind != "random"], random


class _Search:
    """One walk over the nodes.

    ``origins``   nodes where error begins → their place in the order, and what is told
    ``seen``      the largest strain of what was computed so far, what differs without effect apart
    ``switched``  what switches at kinks explain of gradients from here on
    ``trained``   whether the parameters have been through updates
    ``exact``     how many layers that round were found equal to the bit; several of them leave no noise to hide in
    """

    def __init__(self, reasons: Reasons, odd: set[str], trained: bool) -> None:
        self._reasons, self._odd, self._trained = reasons, odd, trained
        self.origins: dict[Node, tuple[int, Origin]] = {}
        self.seen = self.switched = 0.0
        self.exact = 0
        #: The largest strain of what parameters that differ without effect reach, by the module around them.
        self._noise: dict[Node | None, float] = {}
        self._explained: set[Node] = set()
        self._wrong_parameters: set[str] = set()
        self._saved: Node | None = None

    def visit(self, node: Node) -> bool:
        """Judge one node; False when nothing after it can be told."""
        if node.is_save:
            # A save has no inputs: what was saved before it is what it is computed from.
            node.strain_in, node.before, self._saved = self.seen, self._saved, node
        # Through the loss, a forward fault reaches every gradient of the step; and what is saved later inherits.
        if (node.is_backward or node.is_save) and self.origins:
            return False
        if node.is_backward and 0 < node.deviation <= max(self.switched, node.explained_by_kinks()):
            # Figures hide it further on, where it must not be taken for an origin.
            self.switched = max(self.switched, node.explained_by_kinks())
        else:
            self._judge(node)
        out = 0.0 if node.is_parameter_gradient else node.strain_out
        reached = max(node.strain_in, node.strain_parameters, out)
        if node.noise:
            self._noise[node.parent] = max(self._noise.get(node.parent, 0.0), node.noise, reached)
        else:
            self.seen = max(self.seen, reached)
        self.exact += not reached and node.kind in (Kind.LINEAR, Kind.NORM)
        return True

    def _judge(self, node: Node) -> None:
        fresh = node not in self._explained and node.module not in self._wrong_parameters
        if node.strain_parameters > 1 and self._may_begin(node):
            if fresh:
                self._found(node, self._reasons.parameter(node, node.strain_out > _PARAMETER * node.strain_parameters))
            self._explain(node)
            self._wrong_parameters.add(node.module)
        elif self._gives_too_much(node):
            # A framework's own part of a layer is told as the layer.
            if not node.is_part:
                if fresh:
                    self._sharpen(node)
                    self._found(node, self._reasons.result(node))
                self._explain(node)
        elif fresh and node.name in self._odd and self._may_be_told(node):
            self._found(node, self._reasons.width(node))
            self._explain(node)
        elif self._takes_too_much(node):
            # What encloses it took the difference in earlier, though its entry stands later.
            outer = next((up for up in reversed([*node.ancestors()]) if up.strain_in > self._rest(up)), node)
            if outer.parent and (outer.parent.strain_parameters > 1 or self._gives_too_much(outer.parent)):
                # Now, as what differs inside of it will hide it.
                self._judge(outer.parent)
            else:
                self._sharpen(outer)
                self._found(outer, self._reasons.arrival(outer))
                self._explain(outer)
        elif fresh and self._may_be_told(node) and (too_much := added(node, self.seen, trained=self._trained)):
            row, explained = too_much
            row.tolerance = explained
            node.measure()
            self._found(node, self._reasons.result(node))
            self._explain(node)

    def _may_be_told(self, node: Node) -> bool:
        """Whether what lies within the tolerance of a net can be told: it may be more than one layer adds."""
        return not self.origins and self.seen <= _DRIFT and not node.is_backward

    def _rest(self, node: Node) -> float:
        """The strain that says nothing: a net's rounding, or hardly any where all was equal to the bit so far."""
        return rest_of_equals(node) if self.exact >= _EQUALS and not self.seen else 1.0

    def _may_begin(self, node: Node) -> bool:
        # What differs a little may have drifted; where something jumped before, it has inherited.
        return node.strain_before <= (1 if self.seen > _DRIFT else _DRIFT)

    def _gives_too_much(self, node: Node) -> bool:
        if not node.strain_out or node.strain_out <= (rest := self._rest(node)) or not self._may_begin(node):
            return False
        # What differs by updates is noise of another kind than rounding: more of it may hide than figures show.
        doubtful = self._trained or self.seen > _DRIFT or node.strain_before > 1
        return node.strain_out > bound(node, rest, doubtful=doubtful)

    def _takes_too_much(self, node: Node) -> bool:
        """Whether an input differs by far more than anything did before."""
        # Once something jumped, all may have inherited; what only drifted explains no jump.
        if not node.strain_in or self.seen > _DRIFT:
            return False
        rest = _DRIFT if self._trained else self._rest(node)
        noise = max(self._noise.get(up, 0.0) for up in (None, *node.ancestors()))
        before = max(self.seen, noise)
        gain = GAIN_IN_DOUBT if self._trained or before > 1 else GAIN
        return noise <= 1 and node.strain_in > max(rest, gain * before)

    def _sharpen(self, node: Node) -> None:
        """Where all was equal so far, what differs within the tolerance of a net differs all the same."""
        rest = self._rest(node)
        for row in node.pair.rows if rest < 1 else ():
            if rest < strain(row) <= 1 and row.tolerance is not None:
                row.tolerance *= rest
                node.measure()

    def _found(self, node: Node, origin: Origin) -> None:
        self.origins[node] = node.order, origin

    def _explain(self, node: Node) -> None:
        self._explained.update((node, *node.ancestors()))
