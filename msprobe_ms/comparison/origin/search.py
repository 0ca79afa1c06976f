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

import math
from collections.abc import Collection, Iterator, Mapping

from msprobe_ms.comparison.model import Allowance, Origin, OriginKind, Row
from msprobe_ms.comparison.origin.causes import AFTERWARDS, BEFOREHAND
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.inheritance import fill_inheritance
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.walk import Walk
from msprobe_ms.dump.names import beginnings, parse_entry


def find_origins(evidence: Evidence) -> list[Origin]:
    """Find the origins among measured pairs, in execution order; [] when the two dumps agree.

    Fills ``Row.explained`` and ``Row.inherited_from``.
    """
    if beforehand := [origin for cause in BEFOREHAND for origin in cause(evidence).find()]:
        return beforehand
    walk = _walked(evidence)
    walk.settle()
    found = list(walk.origins.values())
    for cause in AFTERWARDS:
        found += cause(evidence).find(walk, found)
    if evidence.damaged:  # the gradients may have been lost with the rest
        found = [each for each in found if each[1].kind != OriginKind.MISSING_GRADIENT]
    found = _without_what_encloses(found, walk)
    lacking = next((origin for _, origin in found if origin.kind == OriginKind.MISSING_GRADIENT), None)
    fill_inheritance(evidence.rows, {node: origin for node, (_, origin) in walk.origins.items()}, lacking)
    return [origin for _, origin in sorted(_missing_first(found, walk), key=lambda each: each[0])]


def _missing_first(found: list[tuple[float, Origin]], walk: Walk) -> Iterator[tuple[float, Origin]]:
    """Put a parameter without a gradient before all that differs in backward, where a part of a sum is missing then."""
    first = min((place for node, (place, _) in walk.origins.items() if node.is_backward), default=math.inf)
    for place, origin in found:
        yield (min(place, first - 0.5) if origin.kind == OriginKind.MISSING_GRADIENT else place), origin


def _without_what_encloses(found: list[tuple[float, Origin]], walk: Walk) -> list[tuple[float, Origin]]:
    """Leave out gradients of modules around a parameter without a gradient: there the branch ends that they lack."""
    ends = [origin.target for _, origin in found if origin.kind == OriginKind.MISSING_GRADIENT]
    modules = [parsed.name for end in ends if (parsed := next(filter(None, map(parse_entry, beginnings(end))), None))]
    enclosing = {
        node: place
        for node, place in walk.origins.items()
        if node.is_backward and any(_is_around(node, module) for module in modules)
    }
    for node in enclosing:
        del walk.origins[node]
    left_out = {id(origin) for _, origin in enclosing.values()}
    return [each for each in found if id(each[1]) not in left_out]


def _is_around(node: Node, module: str) -> bool:
    """Whether a module's path lies in that of the node, or the node is the model itself."""
    return module.startswith(f"{node.module}.") or (node.module == "" != module)


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
