"""Where functions stand that were called in a module without a twin: a wrapper, or what the other side has taken apart.

Such a call is told by what it encloses: where the twins of all modules called in it were called in one place of the
other side, its own functions belong to that place as well. It may be the script: a net that only one side wraps.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import takewhile

from msprobe_ms.names import parse_entry
from msprobe_ms.store.model import Entry, ancestors


def places_of_untwinned(
    entries: Mapping[str, Entry], others: Mapping[str, Entry], twins: Mapping[str, str]
) -> dict[str, str | None]:
    """Module calls of ``entries`` without a twin → the call of ``others`` that encloses theirs, None outside of all.

    ``twins``  names of ``entries`` → of ``others``
    """
    found: dict[str, set[str | None]] = {}
    for name, twin in twins.items():
        entry, other = entries.get(name), others.get(twin)
        if entry is None or other is None or entry.parsed is None or not entry.parsed.is_module:
            continue
        for around in takewhile(lambda call: call not in twins, ancestors(entries, name)):
            found.setdefault(around, set()).add(other.parent)
    return {name: next(iter(places)) for name, places in found.items() if len(places) == 1}


def scope_of(call: str | None) -> Hashable | None:
    """(path, class, call) of a module's entry, () outside of all; None for any other entry."""
    parsed = parse_entry(call) if call is not None else None
    if call is not None and parsed is not None and parsed.is_module:
        return parsed.name, parsed.class_name, parsed.index or 0
    return () if call is None else None
