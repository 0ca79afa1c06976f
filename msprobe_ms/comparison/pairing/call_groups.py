"""Several calls of one side that are one of the other: Dense is ``matmul`` and ``bias_add`` here, ``linear`` there.

A group stands beside its twin as a whole: what its calls take in and did not make themselves is what the twin takes in,
what they give out and do not use up themselves is what it gives out. What passes from one of them to the next has no
twin. In backward the same holds of the gradients, the calls in reverse.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from itertools import product

from msprobe_ms.comparison.pairing.align import fixed_by_marks
from msprobe_ms.comparison.pairing.api_names import Call
from msprobe_ms.comparison.pairing.operations import Part, argument_order
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD

#: Shapes of the first tensor taken in and of the first given out.
Ends = tuple[object, object]


def find_groups(
    calls: Sequence[Call], parts: Sequence[Part], twins: Sequence[Call]
) -> Iterator[tuple[list[Call], Call]]:
    """Runs of ``calls`` (in execution order, with their place in it) that are made of ``parts``, beside ``twins``.

    Each call of a run hands its result on within the run. Runs and twins pair k-th with k-th among those that begin
    and end with tensors of the same shapes, where there are equally many; else those that give out the same figures.
    """
    wanted: dict[Ends, list[Call]] = {}
    for twin in twins:
        if (shapes := ends(twin.entry)) is not None:
            wanted.setdefault(shapes, []).append(twin)
    found: dict[Ends, list[list[Call]]] = {}
    end = 0
    for core, call in enumerate(calls):
        if core >= end and call.means(next(part.word for part in parts if not part.optional)):
            for start, run in _runs(calls, core, end, parts):
                if shapes := meets([call.entry for call in run], wanted):
                    found.setdefault(shapes, []).append(run)
                    end = start + len(run)
                    break
    for shapes, runs in found.items():
        others = wanted[shapes]
        if len(runs) == len(others):
            yield from zip(runs, others, strict=True)
        else:
            marks = [(0, run[-1].figures) for run in runs], [(0, twin.figures) for twin in others]
            yield from ((runs[place], others[other]) for place, other in fixed_by_marks(*marks))


def _runs(calls: Sequence[Call], core: int, begin: int, parts: Sequence[Part]) -> Iterator[tuple[int, list[Call]]]:
    """Runs around the first call that may not be missing, none before ``begin``, and their starts; longest first."""
    before = next(number for number, part in enumerate(parts) if not part.optional)
    choices = product(*((True, False) if part.optional else (True,) for part in parts))
    for taken in sorted(choices, key=sum, reverse=True):
        words = [part.word for part, chosen in zip(parts, taken, strict=True) if chosen]
        start = core - sum(taken[:before])
        run = list(calls[start : start + len(words)]) if start >= begin else []
        if len(run) < len(words) or run[-1].place != run[0].place + len(run) - 1:
            continue
        if all(call.means(word) for call, word in zip(run, words, strict=True)) and _hands_on(run):
            yield start, run


def _hands_on(run: Sequence[Call]) -> bool:
    """Whether what each call gives out is taken in by a later one of the run, the last one's apart."""
    for number, call in enumerate(run[:-1]):
        taken = {figures(item) for later in run[number + 1 :] for item in tensors(later.entry, "input")}
        if not any(figures(item) in taken for item in tensors(call.entry, "output")):
            return False
    return True


def ends(call: Entry) -> Ends | None:
    """The first shape a call takes in and gives out; None where it does not do both."""
    taken, given = tensors(call, "input"), tensors(call, "output")
    return (taken[0].shape, given[0].shape) if taken and given else None


def meets(run: Sequence[Entry], wanted: Container[Ends]) -> Ends | None:
    """Those of the wanted ends that a run has: a shape it takes in from outside, and the first it gives out at last."""
    if not (given := tensors(run[-1], "output")):
        return None
    taken = (item.shape for item in _outside(run) if item.state == "input")
    return next(((shape, given[0].shape) for shape in taken if (shape, given[0].shape) in wanted), None)


def pair_tensors(group: Sequence[Entry], twin: Entry) -> Iterator[tuple[Item, Item]]:
    """Tensors of a group (its entries in the order of the forward calls) beside its twin's.

    They pair by state in their order, each with the next of the same shape. Gradients whose shapes are the twin's from
    last to first were recorded in that order.
    """
    free: dict[tuple[str, object], deque[Item]] = {}
    for item in _in_order(twin, twin.items):
        if item.kind == "tensor":
            free.setdefault((item.state, item.shape), deque()).append(item)
    outside = list(_outside(group))
    shapes = [item.shape for item in outside if item.state == "output"]
    theirs = [item.shape for item in tensors(twin, "output")]
    if shapes != theirs and shapes[::-1] == theirs and is_backward(twin):
        outside.reverse()
    for item in outside:
        if waiting := free.get((item.state, item.shape)):
            yield item, waiting.popleft()


def _outside(group: Sequence[Entry]) -> Iterator[Item]:
    """The tensors that come from outside of the group or leave it.

    One tensor enters the computation and one leaves it, at the last of the forward calls; weights may enter anywhere,
    and so their gradients leave anywhere.
    """
    passed, free = ("output", "input") if is_backward(group[0]) else ("input", "output")
    before: set[object] = set()
    for entry in group:
        for item in _in_order(entry, tensors(entry, passed)):
            if figures(item) not in before:
                yield item
        before |= {figures(item) for item in tensors(entry, free)}
    yield from tensors(group[-1], free)


def _in_order(entry: Entry, items: Sequence[Item]) -> Sequence[Item]:
    """The items of a forward entry, its inputs in the order PyTorch's function takes them."""
    order = argument_order(entry.parsed) if entry.parsed and entry.parsed.direction == FORWARD else []
    inputs = [item for item in items if item.state == "input" and item.kind == "tensor"]
    if not order or sorted(order) != list(range(len(inputs))):
        return items
    return [inputs[place] for place in order] + [item for item in items if item not in inputs]


def is_backward(entry: Entry) -> bool:
    return entry.parsed is not None and entry.parsed.direction == BACKWARD


def tensors(entry: Entry, state: str) -> list[Item]:
    return [item for item in entry.items if item.state == state and item.kind == "tensor"]


def figures(item: Item) -> object:
    """What tells one recorded tensor from another."""
    return item.shape, item.maximum, item.minimum, item.mean, item.norm, item.md5
