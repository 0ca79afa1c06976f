"""Find projections that are one module here and several there: qkv beside q, k and v; gate_up beside gate, up.

They are no counterparts, since none of the parts has a tensor of the whole's shape; but what encloses them is the same.
A module that uses the weights of its children without calling them, as ``torch.nn.MultiheadAttention`` does, is as well
what several do one after another: q, k and v, then the projection behind them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msprobe_ms.comparison.pairing.automatic.outline import INPUT, OUTPUT, PARAMETER, Node, Outline

#: Parts that one module is fused of, at most: q, k, v and gates.
_MOST = 8
#: Layers without a counterpart in one place, at most: where there are more, nobody knows what belongs together.
_GAP = 12
#: How exactly norms add up: sum of squares, relative.
_EXACT = 1e-3


@dataclass(frozen=True, slots=True)
class Fused:
    """Nodes of the target and of the golden that are the same together; one of the two sides has one."""

    ours: tuple[int, ...]
    theirs: tuple[int, ...]


def find_fused(target: Outline, golden: Outline, pairs: dict[int, int]) -> list[Fused]:
    """Find such groups among the layers without a counterpart, near each other in the order of execution."""
    back = {other: one for one, other in pairs.items()}
    wholes_there = [Fused(parts, (whole,)) for parts, whole in _split(target, golden, pairs, back)]
    taken = {node for fused in wholes_there for node in fused.ours}
    wholes_here = [Fused((whole,), parts) for parts, whole in _split(golden, target, back, pairs) if whole not in taken]
    return wholes_there + wholes_here


def _split(
    many: Outline, one: Outline, pairs: dict[int, int], back: dict[int, int]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """(parts in ``many``, whole in ``one``). ``pairs`` leads from ``many`` to ``one``, ``back`` from there."""
    places = {node: place for place, node in enumerate(many.layers)}
    counterparts = [places.get(back.get(node, -1)) for node in one.layers]
    behind = [len(many.layers)]
    for place in reversed(counterparts):
        behind.append(behind[-1] if place is None else place)
    behind.reverse()
    used: set[int] = set()
    before = -1
    for at, whole in enumerate(one.layers):
        before = before if (place := counterparts[at]) is None else place
        if whole in back or (not one.nodes[whole].parameters and one.nodes[whole].kind is None):
            continue
        near = many.layers[before + 1 : max(behind[at], before + 1)]
        if len(near) > _GAP:
            continue
        for group in _groups(many, near, pairs, used):
            candidates = [(node, many.nodes[node]) for node in group]
            if parts := _parts_of(one.nodes[whole], candidates) or _steps_of(one.nodes[whole], candidates):
                used.update(parts)
                yield parts, whole
                break


def _groups(many: Outline, near: Sequence[int], pairs: dict[int, int], used: set[int]) -> Iterator[list[int]]:
    """Layers without a counterpart: siblings of those near, in the order they ran."""
    parents = dict.fromkeys(many.nodes[node].parent for node in near if node not in pairs)
    for parent in parents:
        family = many.nodes[parent].children if parent >= 0 else near
        free = [node for node in family if node not in pairs and node not in used and many.nodes[node].is_layer]
        if 2 <= len(free) <= 4 * _MOST:
            yield free
    free = [node for node in near if node not in pairs and node not in used]
    if len(parents) > 1 and 2 <= len(free) <= 4 * _MOST:
        yield free


def _parts_of(whole: Node, candidates: list[tuple[int, Node]]) -> tuple[int, ...]:
    """The run of candidates that make the whole, () where none does."""
    alike = [(number, node) for number, node in candidates if _same_layer(node, whole)]
    for start in range(len(alike)):
        for stop in range(min(len(alike), start + _MOST), start + 1, -1):
            run = alike[start:stop]
            if _adds_up([node for _, node in run], whole):
                return tuple(number for number, _ in run)
    return ()


def _steps_of(whole: Node, candidates: list[tuple[int, Node]]) -> tuple[int, ...]:
    """The run of candidates that do one after another what the whole does, with its weights; () where none does."""
    if not (whole.held and whole.input and whole.output):
        return ()
    size = sum(map(math.prod, (*(whole.parameters or ()), *whole.held)))
    layers = [(number, node) for number, node in candidates if node.parameters]
    for start in range(len(layers)):
        for stop in range(min(len(layers), start + _MOST), start + 1, -1):
            run = [node for _, node in layers[start:stop]]
            sizes = [math.prod(shape) for node in run for shape in node.parameters or ()]
            if sum(sizes) == size and _begins_and_ends(run[0], run[-1], whole):
                return tuple(number for number, _ in layers[start:stop])
    return ()


def _begins_and_ends(first: Node, last: Node, whole: Node) -> bool:
    """Whether the first takes in what the whole does, and the last gives out a tensor of its size."""
    taken, given = first.input or (), last.output or ()
    return (
        math.prod(taken) == math.prod(whole.input or ())
        and math.prod(given) == math.prod(whole.output or ())
        and taken[-1:] == (whole.input or ())[-1:]
        and given[-1:] == (whole.output or ())[-1:]
    )


def _same_layer(part: Node, whole: Node) -> bool:
    if part.kind and whole.kind:
        return part.kind == whole.kind
    return part.kind == whole.kind and bool(part.children) == bool(whole.children)


def _adds_up(parts: list[Node], whole: Node) -> bool:
    """Shapes must; statistics, of weights or else of what came in, must not contradict."""
    outputs = [math.prod(node.output) if node.output else 0 for node in parts]
    weights = [math.prod(node.largest_parameter) if node.parameters else 0 for node in parts]
    known = False
    for sizes, size in (
        (outputs, math.prod(whole.output) if whole.output else 0),
        (weights, math.prod(whole.largest_parameter) if whole.parameters else 0),
    ):
        if all(sizes) and size:
            if sum(sizes) != size:
                return False
            known = True
    if not known:
        return False
    inputs = {node.input for node in parts if node.input}
    if len(inputs) > 1 or (inputs and whole.input and math.prod(next(iter(inputs))) != math.prod(whole.input)):
        return False
    first = parts[0].statistics[INPUT]
    return all(_near(node.statistics[INPUT][0], first[0]) for node in parts)


def pair_held(target: Outline, golden: Outline, fused: Sequence[Fused]) -> list[tuple[int, int]]:
    """Pair the parts of fused groups with the modules below the whole that were never called, by their parameters."""
    pairs = []
    for group in fused:
        many, one, parts, whole = target, golden, group.ours, group.theirs
        if len(whole) > 1:
            many, one, parts, whole = golden, target, whole, parts
        held = [number for number, node in enumerate(one.nodes) if node.rank < 0 and node.parent == whole[0]]
        for number in held:
            shapes = one.nodes[number].parameters
            alike = [part for part in parts if shapes and many.nodes[part].parameters == shapes]
            if alike:  # rather the last: what goes before has its weights joined
                pairs.append((alike[-1], number) if many is target else (number, alike[-1]))
    return pairs


def norms_add_up(parts: Sequence[Node], whole: Node) -> bool:
    """Whether weights or outputs are the whole's, cut in pieces: squares of norms add up."""
    return any(
        _near(math.hypot(*(part.statistics[at][0] for part in parts)), whole.statistics[at][0], _EXACT, unknown=False)
        for at in (PARAMETER, OUTPUT)
    )


def _near(one: float, other: float, limit: float = _EXACT, unknown: bool = True) -> bool:
    if math.isnan(one) or math.isnan(other):
        return unknown
    return abs(one - other) <= limit * max(abs(one), abs(other))
