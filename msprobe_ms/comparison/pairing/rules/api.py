"""Apply an API mapping: which API of one framework is which of the other, and which items belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msprobe_ms.dump.dialects import MINDSPORE
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.names import BACKWARD, parse_entry
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr

#: An item of a call: its place among the items of its state, or its path (``weight``, ``0.1``).
Place = int | str

#: What stands in a rule beside the two names, after ``ms_`` and ``pt_`` → state of the items in a forward entry.
STATES: Mapping[str, str] = {
    "args": "input",
    "output": "output",
    "parameters": "parameters",
    "parameters_grad": "parameters_grad",
}


@dataclass(frozen=True)
class ApiRule:
    """One rule. ``items``: state → (places in MindSpore's call, places in PyTorch's), equally many of both.

    Of a state that is named, items that are not are left out; of the others all are compared.
    """

    mindspore: str
    pytorch: str
    items: Mapping[str, tuple[Sequence[Place], Sequence[Place]]] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """What both sides are called for pairing; rules that lead to one API share it."""
        return tr("api {pytorch}", pytorch=self.pytorch)

    def turned(self) -> ApiRule:
        """With the two sides exchanged."""
        return ApiRule(self.pytorch, self.mindspore, {state: (b, a) for state, (a, b) in self.items.items()})


def rules_by_side(
    rules: Sequence[ApiRule], target: Dump, golden: Dump
) -> tuple[dict[str, ApiRule], dict[str, ApiRule]]:
    """Return rules by API of the target, and by API of the golden.

    ``ms_api`` is the target's, but where PyTorch is the target and MindSpore the golden. Rules that meet no call of one
    of the dumps are named in a warning.
    """
    if golden.framework == MINDSPORE.name != target.framework:
        rules = [rule.turned() for rule in rules]
    ours, theirs = {rule.mindspore: rule for rule in rules}, {rule.pytorch: rule for rule in rules}
    for side, dump, names in (("target", target, ours), ("golden", golden, theirs)):
        if names and (unmet := sorted(set(names) - _apis(dump))):
            logger.warning(
                tr(
                    "API mapping rules that meet no call of the {side}: {unmet}",
                    side=tr(side),
                    unmet=listed(unmet, most=10),
                )
            )
    return ours, theirs


def _apis(dump: Dump) -> set[str]:
    """``Functional.relu``; of ``Primitive.matmul.MatMul`` also ``Primitive.matmul``."""
    found = set()
    for entry in dump.entries.values():
        if (parsed := entry.parsed) is not None and not parsed.is_module:
            found |= {f"{parsed.prefix}.{parsed.name}", f"{parsed.prefix}.{parsed.name.partition('.')[0]}"}
    return found


def split_listed(
    rule: ApiRule, target: Sequence[Item], golden: Sequence[Item]
) -> tuple[list[tuple[Item, Item | None]], list[Item], list[Item]]:
    """Pair the items a rule names; return these pairs, and of both sides the items of states it does not name.

    In backward the gradients of outputs come in and those of inputs go out, so places of outputs and inputs change.
    """
    parsed = parse_entry(target[0].entry) if target else None
    backward = parsed is not None and parsed.direction == BACKWARD
    turned = {"input": "output", "output": "input"} if backward else {}
    rows: list[tuple[Item, Item | None]] = []
    named = {turned.get(state, state): places for state, places in rule.items.items()}
    for state, (ours, theirs) in named.items():
        mine = [item for item in target if item.state == state]
        others = [item for item in golden if item.state == state]
        for place, other in zip(ours, theirs, strict=True):
            if (item := _at(mine, place)) is not None:
                rows.append((item, _at(others, other)))
    free = [item for item in target if item.state not in named]
    return rows, free, [item for item in golden if item.state not in named]


def _at(items: Sequence[Item], place: Place) -> Item | None:
    if isinstance(place, int):
        return items[place] if place < len(items) else None
    return next((item for item in items if ".".join(item.path) == place), None)
