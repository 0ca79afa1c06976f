"""Where error begins: the nodes, in execution order, whose inputs agree and whose output does not.

What a node differs by is measured in tolerances (its *strain*: deviation / tolerance, 1 = as far apart as dtype and
framework explain). A node is an origin when its output is strained beyond 1, its inputs are not, and the strain jumped
inside it; a drift that crosses the bound by degrees is no origin. Difference is inherited when an origin lies inside
the node, or when its inputs already differ. Two things have no node to blame and are origins of their own: an input
that differs although nothing computed before it does (data, a weight, code that was not recorded), and a parameter
that differs before the step has computed anything with it.

A record can be wrong where the computation is right: when every later node that takes in the very tensor an output
recorded finds it to agree, the difference is the record's and no origin (tools that record the gradient of
``cross_entropy`` with respect to its inner log-softmax leave such entries).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from msprobe_ms.compare.gaps import calls_between
from msprobe_ms.compare.last_nodes import refute_last_nodes
from msprobe_ms.compare.missing_gradients import find_missing_gradients
from msprobe_ms.compare.model import Origin, Pair, Row
from msprobe_ms.compare.nodes import DRIFT, Node, nodes_of, state_of, strain, worst
from msprobe_ms.compare.reasons import describe, describe_outside, figures, origin_at
from msprobe_ms.compare.shared import refute_parts
from msprobe_ms.store.model import Entry

#: What tells one recorded tensor from another.
Fingerprint = tuple[object, ...]

#: Where nothing jumps, error that grew by degrees is told from this strain on; below it the net is only deep.
_DRIFTED = 10.0


def find_origins(pairs: list[Pair], golden: Sequence[Entry] = ()) -> list[Origin]:
    """The origins among measured pairs, in execution order; [] when the two dumps agree.

    ``golden``: all entries of the golden dump in execution order, to tell which of them lie unpaired before an origin.
    """
    _refute(pairs)
    refute_parts(pairs)
    refute_last_nodes(pairs)
    nodes = nodes_of(pairs)
    between = partial(calls_between, pairs=pairs, golden=golden)
    origins: list[tuple[int, Origin]] = []
    explained: set[str] = set()
    wrong_parameters: set[str] = set()
    #: The largest strain of what was computed so far.
    seen = 0.0
    #: What switches at kinks explain of gradients from here on.
    switched = 0.0
    saved: Node | None = None
    for node in nodes:
        if node.is_save:
            # A save has no inputs: what was saved before it is what it is computed from.
            node.strain_in, node.before, saved = seen, saved, node
        # Through the loss, a forward fault reaches every gradient of the step; and what is saved later inherits.
        if (node.is_backward or node.is_save) and origins:
            break
        found: Node | None = None
        if node.is_backward and 0 < node.deviation <= max(switched, node.explained_by_kinks()):
            # Figures hide it further on, where it must not be taken for an origin.
            switched = max(switched, node.explained_by_kinks())
        elif node.is_origin(doubtful=seen > DRIFT):
            found = node
            if node.name not in explained and node.module not in wrong_parameters:
                origins.append((node.order, describe(node, nodes, between)))
        elif seen <= 1 and node.takes_in_what_differs(seen):
            # What encloses it took the difference in earlier, though its entry stands later.
            found = next((up for up in reversed([*node.ancestors()]) if up.strain_in > 1), node)
            origins.append((found.order, describe_outside(found, between(found.pair))))
        if found is not None:
            explained.update(up.name for up in (found, *found.ancestors()))
            if found.strain_parameters > 1:
                wrong_parameters.add(found.module)
        seen = max(seen, node.strain_in, node.strain_parameters, 0.0 if node.is_parameter_gradient else node.strain_out)
    named = {origin.target for _, origin in origins}
    lost = [each for each in find_missing_gradients(pairs) if each[1].target not in named]
    if not origins and not lost and not switched:
        return _drift(nodes)
    origins += lost
    return [origin for _, origin in sorted(origins, key=lambda each: each[0])]


def _refute(pairs: list[Pair]) -> None:
    """Mark the strained outputs that later nodes took in, each time in agreement: same shape, same four figures."""
    inputs: dict[Fingerprint, list[tuple[int, Row]]] = defaultdict(list)
    for order, pair in enumerate(pairs):
        for row in pair.rows:
            if state_of(row) == "input" and (key := _fingerprint(row)) is not None:
                inputs[key].append((order, row))
    for order, pair in enumerate(pairs):
        for row in pair.rows:
            if state_of(row) == "output" and strain(row) > 1 and (key := _fingerprint(row)) is not None:
                taken = [use for later, use in inputs.get(key, ()) if later > order]
                row.refuted = bool(taken) and all(strain(use) <= 1 for use in taken)


def _fingerprint(row: Row) -> Fingerprint | None:
    item = row.target
    if item is None or row.golden is None or item.kind != "tensor" or item.norm is None or item.maximum == item.minimum:
        return None
    return item.shape, item.maximum, item.minimum, item.mean, item.norm


def _drift(nodes: list[Node]) -> list[Origin]:
    """Nothing jumps, yet something is far out of bounds: the first node that is out of bounds at all."""
    if all(strain(row) <= _DRIFTED for node in nodes for row in node.pair.rows):
        return []
    for node in nodes:
        row = worst(node.pair.rows)
        if row is not None and strain(row) > 1:
            reason = f"error grows by degrees and crosses the tolerance here: {figures(row)}"
            return [origin_at(row, reason)]
    return []
