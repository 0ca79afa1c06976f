"""Pair the layers of like modules alike: what figures prove in one block holds in all blocks of its class.

A fault hides behind it what tells layers apart. In the blocks before it their weights, or what they gave out, do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from msprobe_ms.comparison.pairing.automatic.layers import Found
from msprobe_ms.comparison.pairing.automatic.outline import OUTPUT, PARAMETER, Outline
from msprobe_ms.comparison.pairing.automatic.scores import ModuleScores

#: What speaks for a pair that is proven in another block of its class.
_PROVEN = 10.0

#: A layer by the class of a module around it and the path from there.
_Place = tuple[str, tuple[str, ...]]


def pair_alike(evidence: ModuleScores, layers: list[Found], inner: Mapping[int, int]) -> list[Found]:
    """Return ``layers`` with those put right that figures do not prove, and do prove otherwise in other blocks.

    ``inner``: the modules around layers that are paired.
    """
    ours, theirs = [one.ours for one in layers], [one.theirs for one in layers]
    made = np.array([not evidence.golden.passes_on(one.theirs) for one in layers], bool)
    proofs = evidence.agree(ours, theirs, PARAMETER) | (evidence.agree(ours, theirs, OUTPUT) & made)
    proven = {one.ours: one.theirs for one, proof in zip(layers, proofs, strict=True) if proof}
    wanted = dict(_wanted(evidence, proven, inner))
    taken, paired = set(proven.values()), {one.ours: one.theirs for one in layers}
    changed = {one: other for one, other in wanted.items() if other not in taken and paired.get(one) != other}
    if not changed:
        return layers
    given = set(changed.values())
    kept = [one for one in layers if one.ours not in changed and one.theirs not in given]
    return [*kept, *(Found(one, other, _PROVEN, _PROVEN) for one, other in changed.items())]


def _wanted(evidence: ModuleScores, proven: Mapping[int, int], inner: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """The layers that are not proven themselves and what they are where other modules of a class prove it."""
    target, golden = evidence.target, evidence.golden
    rules: dict[_Place, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for ours, theirs in proven.items():
        for place, other in _places(evidence, ours, theirs, inner):
            rules[place][other] += 1
    numbers = {node.parts: number for number, node in enumerate(golden.nodes)}
    there = set(proven.values())
    for ours in target.layers:
        if ours in proven:
            continue
        for above in target.ancestors(ours):
            known = rules.get(_place(target, above, ours))
            if above not in inner or known is None or len(known) > 1:
                continue
            number = numbers.get(golden.nodes[inner[above]].parts + next(iter(known)))
            if number is not None and number not in there and golden.nodes[number].rank >= 0:
                yield ours, number
            break


def _places(
    evidence: ModuleScores, ours: int, theirs: int, inner: Mapping[int, int]
) -> Iterator[tuple[_Place, tuple[str, ...]]]:
    """Where the two stand in each pair of modules that encloses both."""
    above_there = set(evidence.golden.ancestors(theirs))
    for above in evidence.target.ancestors(ours):
        other = inner.get(above)
        if other is not None and other in above_there:
            below = evidence.golden.nodes[theirs].parts[len(evidence.golden.nodes[other].parts) :]
            yield _place(evidence.target, above, ours), below


def _place(side: Outline, above: int, layer: int) -> _Place:
    return side.nodes[above].class_name, side.nodes[layer].parts[len(side.nodes[above].parts) :]
