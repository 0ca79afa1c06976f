"""Plain arguments of a call beside those of its counterpart: which differ, and what holds where a side gives none."""

from __future__ import annotations

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.pairing.arguments import SameArgument, Stated, same_arguments
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import FORWARD
from msprobe_ms.support.translation import tr, tr_list


class Arguments:
    """The arguments of two counterpart calls of functions; of other pairs there are none."""

    def __init__(self, pair: Pair, frameworks: tuple[str, str]) -> None:
        self._of_target: dict[str, SameArgument] = {}
        self._of_golden: dict[str, SameArgument] = {}
        target, golden = pair.target, pair.golden
        if target is None or golden is None or target.parsed is None or target.parsed.direction != FORWARD:
            return  # what a backward takes in is no argument
        for each in same_arguments(target, golden, frameworks, several=pair.how == PairedBy.GROUP):
            self._of_target.update((item.name, each) for item in each.target.items)
            self._of_golden.update((item.name, each) for item in each.golden.items)

    def differ(self, row: Row) -> bool:
        """Return whether a row holds an argument that means something else on the other side."""
        found = self._found(row)
        return found is not None and found.differs

    def not_given(self, row: Row) -> str:
        """Return what the side that a row lacks has instead: an attribute or a default; "" where it has nothing."""
        found = self._found(row)
        if found is None or row.matched:
            return ""
        return _told(found.golden if row.in_target else found.target)

    def _found(self, row: Row) -> SameArgument | None:
        mine, other = _name(row.target), _name(row.golden)
        found = self._of_target.get(mine) if mine else self._of_golden.get(other)
        # Items may stand beside each other by their place alone, which are other arguments.
        return None if found is None or (mine and other and self._of_golden.get(other) is not found) else found


def _name(item: Item | None) -> str:
    return item.name if item is not None else ""


def _told(stated: Stated) -> str:
    if stated.values is None or stated.items:
        return ""
    text = tr("{name} = {value}", name=stated.name, value=tr_list(map(str, stated.values)))
    return tr("{setting} (default)", setting=text) if stated.default else text
