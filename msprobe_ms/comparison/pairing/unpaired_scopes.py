"""Where functions stand that were called in a module without a twin: a wrapper, or what the other side has taken apart.

Such a call is told by what it encloses: where the twins of all modules called in it were called in one place of the
other side, its own functions belong to that place as well. It may be the script: a net that only one side wraps.
A module that is one function and nothing else (``nn.ReLU``) encloses none: its function belongs where it was called, as
the other side may call the function itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import takewhile

from msprobe_ms.dump.model import Entry, ancestors
from msprobe_ms.dump.names import FORWARD, EntryName, parse_entry


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
    places = {name: next(iter(each)) for name, each in found.items() if len(each) == 1}
    for name in _single_functions(entries, twins):
        outer = next((call for call in ancestors(entries, name) if call in twins or call in found), None)
        if outer is None or outer in twins:
            places[name] = None if outer is None else twins[outer]
        elif outer in places:
            places[name] = places[outer]
    return places


def _single_functions(entries: Mapping[str, Entry], twins: Mapping[str, str]) -> Iterator[str]:
    """Module calls without a twin that are one function: they called it alone, bear its name and have no parameters."""
    called: dict[str, list[EntryName]] = {}
    for entry in entries.values():
        if entry.parsed is not None and entry.parsed.direction == FORWARD and entry.parent is not None:
            called.setdefault(entry.parent, []).append(entry.parsed)
    for name, functions in called.items():
        module = entries.get(name)
        if module is None or module.parsed is None or len(functions) > 1 or functions[0].is_module or name in twins:
            continue
        named = map(_plain, functions[0].name.split("."))
        if _plain(module.parsed.class_name) in named and not module.in_state("parameters"):
            yield name


def _plain(name: str) -> str:
    """``max_pool2d`` as ``MaxPool2d``."""
    return name.replace("_", "").lower()


def scope_of(call: str | None) -> Hashable | None:
    """(path, class, call) of a module's entry, () outside of all; None for any other entry."""
    parsed = parse_entry(call) if call is not None else None
    if call is not None and parsed is not None and parsed.is_module:
        return parsed.name, parsed.class_name, parsed.index or 0
    return () if call is None else None
