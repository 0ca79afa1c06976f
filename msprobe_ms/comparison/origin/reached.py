"""How far error has come: the largest error ratios of what was computed so far, which may reach what comes after it."""

from __future__ import annotations

from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.origin.nodes import Node, is_compared_whole
from msprobe_ms.comparison.origin.propagation import bitwise_floor

#: Layers that were equal to the bit from which on the two dumps are of one machine.
_EQUALS = 3


class ReachedError:
    """The largest error ratios of the nodes that were noted, in the order of execution.

    ``largest``  that of anything computed so far, but of what differs without effect
    """

    def __init__(self, *, updated: bool, same_framework: bool) -> None:
        self._updated, self._same_framework = updated, same_framework
        self.largest = 0.0
        #: How many layers that round were found equal to the bit; several of them leave no noise to hide in.
        self._equal_layers = 0
        #: The largest error ratio that parameters without effect lead to, by the module around them.
        self._noise: dict[Node | None, float] = {}
        #: The same of all that was computed so far, by the module right around it.
        self._inside: dict[Node | None, float] = {}

    def note(self, node: Node) -> None:
        """Note the largest error ratio at a node that what comes after it may be computed from."""
        inside = self._inside.get(node.parent, 0.0)
        at_most = max(node.ratio_in, node.ratio_parameters, node.ratio_out)
        if 0 < at_most <= min(inside, self.largest) and not node.ratio_without_effect:
            return  # as of nearly all behind an origin: nothing becomes larger by it
        given = 0.0 if node.is_parameter_gradient or node.is_loss else node.ratio_out_of_one_form
        reached = max(node.ratio_in_of_one_form, node.ratio_parameters, given)
        self._inside[node.parent] = max(inside, reached)
        if node.ratio_without_effect:
            noise = max(node.ratio_without_effect, reached)
            self._noise[node.parent] = max(self._noise.get(node.parent, 0.0), noise)
        else:
            self.largest = max(self.largest, reached)
        self._equal_layers += not reached and node.kind in (Kind.LINEAR, Kind.NORM, Kind.CHANNEL_NORM, Kind.BATCH_NORM)

    def note_given(self, node: Node, ratio: float) -> None:
        """Note the error ratio of what a call is given, from which all that it calls may be computed."""
        self._inside[node] = max(self._inside.get(node, 0.0), ratio)
        self.largest = max(self.largest, ratio)

    def before(self, node: Node) -> float:
        """The largest error ratio of anything that may reach ``node``.

        Values flow: in forward a call is given what its module was given, and what ran inside that so far. Where not
        all of that was compared, or parameters were updated, it is anything computed before.
        """
        around = node.parent
        if node.is_backward or self._updated or around is None or not is_compared_whole(around):
            return self.largest
        return min(self.largest, max(around.ratio_in, around.ratio_parameters, self._inside.get(around, 0.0)))

    def noise_around(self, node: Node) -> float:
        """The largest error ratio that parameters without effect lead to in the modules around ``node``."""
        return max(self._noise.get(up, 0.0) for up in (None, *node.ancestors())) if self._noise else 0.0

    def hidden_in(self, node: Node) -> float:
        """The largest error ratio that may hide in what a single layer takes in.

        A normalisation makes small rows as large as the others: what they hide hardly shows in the whole they are part
        of, so that it may be as large as anything computed before. Nothing is hidden of a linear layer or an activation
        where all elements that it takes in were compared.
        """
        if node.kind is Kind.NORM:
            return self.largest
        if node.kind in (Kind.LINEAR, Kind.ACTIVATION) and not node.children and is_compared_whole(node):
            return min(self.before(node), node.ratio_taken)
        return self.before(node)

    def negligible(self, node: Node) -> float:
        """Return the error ratio up to which a difference is taken for rounding.

        1, the tolerance of a net; much less where several layers were equal to the bit and nothing differed so far, but
        of a loss, which frameworks add up in other orders, and of a call that was given other operands on both sides,
        from which it rounds otherwise.
        """
        if self.largest or self._equal_layers < _EQUALS or node.is_loss:
            return 1.0
        if any(row.misrecorded and row.deviation for row in node.rows("input")):
            return 1.0
        return bitwise_floor(node, same_framework=self._same_framework)
