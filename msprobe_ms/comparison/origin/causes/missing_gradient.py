"""Parameters that have a gradient on one side alone: frozen, detached, or forgotten by the optimizer.

Nothing of its gradient is compared, so no difference shows. It is told where the parameter itself has a
counterpart and the side without its gradient has gradients of others (else none were recorded). A gradient of zeros is
none: one framework hands on zeros where another leaves the gradient out; nor is one of rounding noise. Of a layer that
is joined of several on one side, a part without a gradient shows in that the whole differs, by whatever that is
explained: neither rounding nor a switch leaves zeros.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.measuring.gradient_floors import GradientFloors
from msprobe_ms.comparison.measuring.tolerances import Tolerances
from msprobe_ms.comparison.model import Origin, OriginKind, Pair, Row
from msprobe_ms.comparison.pairing.coverage import RUNNING_STATISTICS
from msprobe_ms.comparison.pairing.fused_tensors import holds_joined, parts_of
from msprobe_ms.comparison.statistics import root_mean_square
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side, Stage
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import FORWARD, PARAMETERS_GRAD, is_fused
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk

#: Dotted name and class of a module, and the path of its parameter.
Place = tuple[str, str, tuple[str, ...]]
#: Parameters told by name; the rest is counted.
_TOLD = 3


@dataclass
class _Side:
    """Parameters and gradients of one dump by their place.

    ``recorded`` whether gradients were, be they all zeros
    ``orders``   where a gradient stands among the pairs
    ``calls``    where the call of a parameter's module begins among them; its entry stands behind what it calls
    ``begins``   name of an entry → where the first of the calls inside it stands
    ``alike``    places of the parameters that have the same statistics
    ``modules``  statistics of a module's parameters, constants apart
    ``entries``  the entries by name
    """

    parameters: dict[Place, Item] = field(default_factory=dict)
    gradients: dict[Place, Item] = field(default_factory=dict)
    recorded: bool = False
    orders: dict[Place, int] = field(default_factory=dict)
    calls: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    begins: dict[str, int] = field(default_factory=dict)
    alike: dict[object, list[Place]] = field(default_factory=lambda: defaultdict(list))
    modules: dict[tuple[str, str], list[object]] = field(default_factory=lambda: defaultdict(list))
    entries: dict[str, Entry] = field(default_factory=dict)

    def add(self, order: int, entry: Entry | None) -> None:
        if entry is None or not entry.is_module:
            return
        self.entries[entry.name] = entry
        begin = self.begins.get(entry.name, order)
        if entry.parent is not None:
            self.begins.setdefault(entry.parent, begin)
        for place, item in _placed(entry, PARAMETERS_GRAD, "parameters_grad"):
            self.recorded |= item.kind == "tensor"
            if item.kind == "tensor" and not item.maximum == item.minimum == 0:
                self.gradients.setdefault(place, item)
                self.orders.setdefault(place, order)
        for place, item in _placed(entry, FORWARD, "parameters"):
            if place not in self.parameters:
                self.parameters[place] = item
                self.calls[place] = begin
                if _is_telling(item):
                    self.alike[_statistics(item)].append(place)
                    self.modules[place[:2]].append(_statistics(item))

    def beyond_rounding(self, places: list[Place]) -> list[Place]:
        """Those whose gradients are more than what rounding leaves of the terms that they sum."""
        if not places:
            return []
        floors = GradientFloors(self.entries, 1.0)
        bound = Tolerances().bound
        found = []
        for place in places:
            item = self.gradients[place]
            floor = floors.of_entry(self.entries.get(item.entry)).get(item.name, 0.0)
            floor = max(floor, parse_dtype(item.dtype).smallest_normal)
            rounding = bound(item.dtype, item.dtype, exact=False, same_framework=False, gradient=True) * floor
            size = root_mean_square(item)
            if size is None or size > rounding:
                found.append(place)
        return found

    def parts_with_gradients(self, place: Place) -> list[str]:
        """Of a module that is joined of several, those that have gradients: none of theirs is the whole's."""
        of_module = (path[0] for module, kind, path in self.gradients if (module, kind) == place[:2] and len(path) > 1)
        return list(dict.fromkeys(of_module)) if is_fused(place[0]) else []

    def tied(self, place: Place) -> Iterator[Place]:
        """Where a tensor with the statistics of this parameter is one of another module: tied weights.

        Constants (zeros, ones) look all alike; they count as tied where another parameter of their module is.
        """
        item = self.parameters[place]
        kin = [_statistics(item)] if _is_telling(item) else self.modules.get(place[:2], [])
        return (at for statistics in kin for at in self.alike.get(statistics, ()) if at[:2] != place[:2])


class MissingGradient:
    """A parameter with a gradient on one side alone."""

    def __init__(self, evidence: Evidence) -> None:
        self._pairs, self._nodes, self._dumps = evidence.pairs, evidence.nodes, evidence.dumps

    def find(self, walk: Walk, found: Sequence[tuple[float, Origin]]) -> list[tuple[float, Origin]]:
        """One origin a side that lacks gradients, but for what is named already."""
        named = {origin.target for _, origin in found}
        missing = [*find_missing_gradients(self._pairs), *(() if found else self._of_parts())]
        return [each for each in missing if each[1].target not in named]

    def _of_parts(self) -> list[tuple[float, Origin]]:
        """The first part of a joined parameter whose gradient is zeros, where the whole differs from its counterpart's.

        Where something else is the origin, that explains the whole.
        """
        dumps = self._dumps
        sides = [side for side in (TARGET, GOLDEN) if dumps is not None and holds_joined(dumps[side])]
        for node in self._nodes if sides else ():
            for row in node.rows("parameters_grad") if node.is_parameter_gradient else ():
                if row.deviation is None or row.tolerance is None or row.deviation <= row.tolerance:
                    continue
                for side in sides:
                    joined = row.golden if side is GOLDEN else row.target
                    parts = parts_of(dumps[side], joined) if dumps is not None and joined is not None else ()
                    if part := next((each for each in parts if each.maximum == each.minimum == 0), None):
                        return [(node.order, _origin_of_part(part, row, side))]
        return []


def _origin_of_part(part: Item, row: Row, side: Side) -> Origin:
    ours, theirs = (item.name if item is not None else "" for item in (row.target, row.golden))
    names = (ours, part.name) if side is GOLDEN else (part.name, theirs)
    return Origin(
        *names, "parameters_grad", _reason(str(side)), {}, OriginKind.MISSING_GRADIENT, stage=Stage.BACKWARD
    )  # fmt: skip


def find_missing_gradients(pairs: Sequence[Pair]) -> list[tuple[float, Origin]]:
    """One origin a side that lacks gradients, at the first parameter in order, with its place among the pairs."""
    target, golden = _Side(), _Side()
    counterparts: dict[Place, Place] = {}
    for order, pair in enumerate(pairs):
        if not ((pair.target and pair.target.is_module) or (pair.golden and pair.golden.is_module)):
            continue
        target.add(order, pair.target)
        golden.add(order, pair.golden)
        if pair.matched:
            for row in pair.rows:
                if row.matched and row.state == "parameters" and row.target is not None and row.golden is not None:
                    ours, theirs = _place(pair.target, row.target), _place(pair.golden, row.golden)
                    if ours is not None and theirs is not None:
                        counterparts.setdefault(ours, theirs)
    back = {theirs: ours for ours, theirs in counterparts.items()}
    found: list[tuple[float, Origin]] = []
    sides = (("target", target, golden, back, counterparts), ("golden", golden, target, counterparts, back))
    for name, lacking, having, to, fro in sides:
        missing = [at for at in having.gradients if _is_missing(at, lacking, having, to, fro)]
        missing = having.beyond_rounding(missing)
        if missing:
            # The gradient comes from the loss: it stops at the parameter that was used last, which of a module that
            # calls others is its own parameter only where none of theirs lacks a gradient.
            first = max(missing, key=having.calls.__getitem__)
            ours, theirs = (to[first], first) if name == "target" else (first, to[first])
            # Told by the names of the target, as the first is.
            others = [to[at] if name == "target" else at for at in missing if at != first]
            also = [".".join((module, *path)).lstrip(".") for module, _, path in others]
            details = [tr("the same holds for {also}", also=listed(also, _TOLD))] if also else []
            if parts := lacking.parts_with_gradients(to[first]):
                text = tr(
                    "of the layers that are fused on the other side, {parts} have a gradient", parts=listed(parts)
                )
                details.insert(0, text)
            names = target.parameters[ours].name, golden.parameters[theirs].name
            origin = Origin(
                *names, "parameters_grad", _reason(name), {}, OriginKind.MISSING_GRADIENT,
                details=tuple(details), stage=Stage.BACKWARD,
            )  # fmt: skip
            found.append((having.orders[first], origin))
    return found


def _is_missing(place: Place, lacking: _Side, having: _Side, to: dict[Place, Place], fro: dict[Place, Place]) -> bool:
    """Whether the gradient at ``place`` has no counterpart; ``to`` leads to the lacking side's places, ``fro`` back."""
    own = to.get(place)
    if own is None or own in lacking.gradients or not lacking.recorded or place[2][-1] in RUNNING_STATISTICS:
        return False
    for other in lacking.tied(own):
        # Tied weights have one gradient, which each framework may record at another of their places.
        if other in lacking.gradients:
            recorded = having.gradients.get(fro.get(other, other))
            if recorded is None or _statistics(recorded) == _statistics(having.gradients[place]):
                return False
    return True


def _reason(side: str) -> str:
    other_side = "golden" if side == "target" else "target"
    return tr(
        "the {other_side} has a gradient of this parameter, the {side} none: is it frozen, detached "
        "or left out of the optimizer's weights?",
        other_side=tr(other_side),
        side=tr(side),
    )


def _placed(entry: Entry | None, direction: str, state: str) -> Iterable[tuple[Place, Item]]:
    if entry is None or entry.parsed is None or entry.parsed.direction != direction or not entry.parsed.is_module:
        return ()
    parsed = entry.parsed
    return (((parsed.name, parsed.class_name, item.path), item) for item in entry.items if item.state == state)


def _place(entry: Entry | None, item: Item) -> Place | None:
    parsed = entry.parsed if entry is not None else None
    return (parsed.name, parsed.class_name, item.path) if parsed is not None and parsed.is_module else None


def _is_telling(item: Item) -> bool:
    return item.kind == "tensor" and (item.maximum != item.minimum or (item.maximum is None and item.md5 is not None))


def _statistics(item: Item) -> object:
    return item.shape, item.maximum, item.minimum, item.mean, item.norm, item.md5
