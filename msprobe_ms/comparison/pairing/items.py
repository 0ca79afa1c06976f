"""Pair the items of two paired entries."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence

from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import BACKWARD, parse_entry

#: Names MindSpore gives a parameter → the name PyTorch gives the parameter of the same meaning.
PARAMETER_SYNONYMS: Mapping[str, str] = {
    "gamma": "weight",
    "beta": "bias",
    "embedding_table": "weight",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}


def pair_items(target: Sequence[Item], golden: Sequence[Item]) -> list[tuple[Item | None, Item | None]]:
    """Pair items, each once or alone: the target's in their order, then what only the golden has.

    Counterparts have the same suffix (``input.0``, ``parameters.weight``). What is left then pairs by the meaning of a
    parameter's name, and tensors given by position with tensors given by keyword. Gradients a backward entry gives
    out have the shapes of the forward's inputs, so they pair with equal shapes only: some dumps list those of an inner
    operation instead, or leave ``null`` places out.
    """
    counterparts: dict[int, int] = {}
    free = dict.fromkeys(range(len(golden)))

    def take(ours: Sequence[int], theirs: Sequence[int]) -> None:
        for place, other in zip(ours, theirs, strict=True):
            counterparts[place] = other
            del free[other]

    take(*_gradients_in_order(target, golden))
    backward = _is_backward(target)
    for key in (_suffix, _meaning):
        waiting: dict[Hashable, deque[int]] = {}
        for other in free:
            waiting.setdefault(key(golden[other], backward), deque()).append(other)
        for place, item in enumerate(target):
            if place not in counterparts and (queue := waiting.get(key(item, backward))):
                take([place], [queue.popleft()])
        if len(counterparts) == len(target) or not free:
            break
    left = [place for place in range(len(target)) if place not in counterparts]
    for ours_keyword in (False, True):
        take(*_position_beside_keyword(target, golden, left, list(free), ours_keyword))
    rows: list[tuple[Item | None, Item | None]] = [
        (item, golden[counterparts[place]] if place in counterparts else None) for place, item in enumerate(target)
    ]
    return rows + [(None, golden[other]) for other in free]


def _is_backward(items: Sequence[Item]) -> bool:
    parsed = parse_entry(items[0].entry) if items else None
    return parsed is not None and parsed.direction == BACKWARD


def _suffix(item: Item, backward: bool) -> Hashable:
    return (item.suffix, item.shape) if backward and item.state == "output" else item.suffix


def _meaning(item: Item, backward: bool) -> Hashable:
    """The suffix with a parameter's name put in PyTorch's words; other items keep theirs."""
    if item.state not in ("parameters", "parameters_grad") or not item.path:
        return _suffix(item, backward)
    *owner, name = ".".join(item.path).split(".")
    return (item.state, *owner, PARAMETER_SYNONYMS.get(name, name))


def _gradients_in_order(target: Sequence[Item], golden: Sequence[Item]) -> tuple[list[int], list[int]]:
    """Gradients given out, when the two lists differ only in where ``null`` stands for "no gradient".

    ``[null, dW, db]`` beside ``[dW, db]``: by suffix dW would stand beside null and db beside dW.
    """
    if not (_is_backward(target) and _is_backward(golden)):
        return [], []
    ours, theirs = _output_tensors(target), _output_tensors(golden)
    equal = [target[place].shape for place in ours] == [golden[place].shape for place in theirs]
    return (ours, theirs) if equal else ([], [])


def _output_tensors(items: Sequence[Item]) -> list[int]:
    return [place for place, item in enumerate(items) if item.state == "output" and item.kind == "tensor"]


def _position_beside_keyword(
    target: Sequence[Item], golden: Sequence[Item], ours: list[int], theirs: list[int], ours_keyword: bool
) -> tuple[list[int], list[int]]:
    """Left-over input tensors, positional on one side and by keyword on the other, equally many of equal shapes."""
    mine = [place for place in ours if _is_input(target[place], keyword=ours_keyword)]
    others = [place for place in theirs if _is_input(golden[place], keyword=not ours_keyword)]
    equal = [target[place].shape for place in mine] == [golden[place].shape for place in others]
    return (mine, others) if equal else ([], [])


def _is_input(item: Item, *, keyword: bool) -> bool:
    return item.state == "input" and item.kind == "tensor" and item.keyword == keyword
