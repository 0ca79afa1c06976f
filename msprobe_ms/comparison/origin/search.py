"""Where error begins: the nodes, in execution order, that give out more error than anything explains.

The *error ratio* of a value is its deviation over what is explained, its tolerance at first; the origin is the first
node with a value that nothing explains. What explains is one tuple (``explanations``), what an origin is another
(``causes``). A drift that crosses the tolerance by degrees is no origin, as what comes in explains what goes out.
Difference is inherited when an origin lies inside the node, or when its inputs already differ. Two things have no node
to blame and are origins of their own: an input that differs although nothing computed before it does (data, a weight,
code that was not recorded), and a parameter that differs before the step has computed anything with it.

Random operations differ by right. They are told, as origins of kind ``random``, and nobody's fault.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msprobe_ms.comparison.model import Allowance, Origin, OriginKind, Row
from msprobe_ms.comparison.origin.causes import AFTERWARDS
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.nodes import Fingerprint, Node, error_ratio, fingerprint
from msprobe_ms.comparison.origin.walk import Walk


def find_origins(evidence: Evidence) -> list[Origin]:
    """Find the origins among measured pairs, in execution order; [] when the two dumps agree.

    Fills ``Row.explained`` and ``Row.inherited_from``.
    """
    walk = _walked(evidence)
    found = list(walk.origins.values())
    for cause in AFTERWARDS:
        found += cause(evidence).find(walk, found)
    if evidence.damaged:  # the gradients may have been lost with the rest
        found = [each for each in found if each[1].kind != OriginKind.MISSING_GRADIENT]
    fill_inheritance(evidence.nodes, {node: node.name for node in walk.origins})
    return [origin for _, origin in sorted(found, key=lambda each: each[0])]


def explanations_tried(evidence: Evidence, rows: Collection[Row]) -> Mapping[Row, list[tuple[str, Allowance | None]]]:
    """Search again and return, of each of ``rows``, what every explanation that was asked of it allowed.

    Those that survey rows before the walk are asked of all; the others of what is beyond its tolerance, in the order of
    execution, up to where the search ends.
    """
    return _walked(evidence, rows).tried


def split_random(found: list[Origin]) -> tuple[list[Origin], list[Origin]]:
    """Split the origins of error from random operations, which are nobody's fault."""
    random = [origin for origin in found if origin.kind == OriginKind.RANDOM]
    return [origin for origin in found if origin.kind != OriginKind.RANDOM], random


def _walked(evidence: Evidence, watched: Collection[Row] = ()) -> Walk:
    walk = Walk(evidence, watched)
    for node in evidence.nodes:
        if not walk.visit(node):
            break
    return walk


def fill_inheritance(nodes: list[Node], origins: Mapping[Node, str]) -> None:
    """Fill ``Row.inherited_from`` of every differing row that belongs to no origin.

    ``origins``: the nodes where error begins → the name to give. A node inherits from the origin around it, from those
    who made what it takes in, from what ran inside it or before its gradient; where nothing of that was recorded, from
    the last origin before it.
    """
    if not origins:
        return
    sources: dict[Node, str] = {}
    made: dict[Fingerprint, str] = {}
    latest = ""
    for node in nodes:
        largest = max(node.ratio_in, node.ratio_parameters, node.ratio_out, node.ratio_without_effect)
        if largest <= 1 and node not in origins:
            continue
        if node in origins:
            source = latest = origins[node]
        else:
            source = _around(node, origins) or _taken(node, made) or _inside(node, sources) or latest
        sources[node] = source
        for row in node.pair.rows:
            if error_ratio(row) > 1:
                if node not in origins:
                    row.inherited_from = source
                if row.state == "output" and (key := fingerprint(row)) is not None:
                    made[key] = source


def _around(node: Node, origins: Mapping[Node, str]) -> str:
    return next((origins[up] for up in node.ancestors() if up in origins), "") if node.ratio_in > 1 else ""


def _taken(node: Node, made: Mapping[Fingerprint, str]) -> str:
    for row in node.pair.rows:
        if made and row.state == "input" and error_ratio(row) > 1:
            key = fingerprint(row)
            if key is not None and key in made:
                return made[key]
    return ""


def _inside(node: Node, sources: Mapping[Node, str]) -> str:
    return next((sources[each] for each in (*node.children, *node.context) if sources.get(each)), "")
