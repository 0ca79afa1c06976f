"""What a node has to do with the error: it begins there, inside it, or came from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from msprobe_ms.comparison.model import Comparison, Origin
from msprobe_ms.comparison.node.lookup import Chosen
from msprobe_ms.dump.model import Dump, ancestors

_AGREES = "nothing here differs by more than its dtype explains"
_REFUTED = "what differs here is what was recorded; every later use of the tensor agrees"


def status_lines(chosen: Chosen, comparison: Comparison, target: Dump) -> Iterator[str]:
    """Say whether error begins in a node, came from elsewhere or is none; nothing where no value has a counterpart."""
    names = {pair.target.name for pair in chosen.pairs if pair.target is not None}
    entries = {id(origin): _entry_name(target, origin) for origin in comparison.origins}
    own = [origin for origin in comparison.origins if entries[id(origin)] in names]
    inside = [origin for origin in comparison.origins if names & set(ancestors(target.entries, entries[id(origin)]))]
    if own:
        yield from (f"ORIGIN: {origin.target}: {origin.reason}" for origin in own)
    elif inside:
        yield f"the error begins inside: {inside[0].target}: {inside[0].reason}"
    elif not any(row.matched for row in chosen.rows):
        return
    elif not chosen.differs:
        yield f"agrees: {_REFUTED if any(row.misrecorded for row in chosen.rows) else _AGREES}"
    else:
        source = next((row.inherited_from for row in chosen.rows if row.differs and row.inherited_from), "")
        order = {pair.target.name: place for place, pair in enumerate(comparison.pairs) if pair.target}
        place = min((order[name] for name in names), default=0)
        earlier = [origin for origin in comparison.origins if order.get(entries[id(origin)], place) < place]
        earlier = [origin for origin in comparison.origins if origin.target == source] or earlier
        if source and not earlier:
            yield f"inherits: the error begins at {source}"
        elif earlier:
            yield f"inherits: the error begins earlier, at {earlier[0].target}: {earlier[0].reason}"
        else:
            yield "differs, and no origin lies before it: slow drift, or switching at kinks (ReLU, pooling)"


def _entry_name(dump: Dump, origin: Origin) -> str:
    """The entry of an origin, whose ``target`` is an entry or an item."""
    name = origin.target
    while name and name not in dump.entries:
        name = name.rpartition(".")[0]
    return name
