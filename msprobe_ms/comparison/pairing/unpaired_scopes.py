"""Find the scope in which to pair API calls made inside a module that has no counterpart.

Such a module is a wrapper, or one that the other side has taken apart.

A call of it is known by what it encloses: where the counterparts of all modules called in it were called in one place
of the other side, its own functions belong to that place as well. It may be the script: a net that only one side wraps.
A module that is one function and nothing else (``nn.ReLU``) encloses none: its function belongs where it was called, as
the other side may call the function itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import takewhile

from msprobe_ms.dump.model import Entry, ancestors
from msprobe_ms.dump.names import FORWARD, EntryName, parse_entry


def scopes_of_unpaired(
    entries: Mapping[str, Entry], others: Mapping[str, Entry], counterparts: Mapping[str, str]
) -> dict[str, str | None]:
    """Return, for module calls without a counterpart, the call of the other dump that encloses what they enclose.

    None stands for outside of all.

    ``counterparts``  names of ``entries`` → of ``others``
    """
    found: dict[str, set[str | None]] = {}
    for name, counterpart in counterparts.items():
        entry, other = entries.get(name), others.get(counterpart)
        if entry is None or other is None or entry.parsed is None or not entry.parsed.is_module:
            continue
        for caller in takewhile(lambda call: call not in counterparts, ancestors(entries, name)):
            found.setdefault(caller, set()).add(other.parent)
    scopes = {name: next(iter(each)) for name, each in found.items() if len(each) == 1}
    for name in _single_functions(entries, counterparts):
        outer = next((call for call in ancestors(entries, name) if call in counterparts or call in found), None)
        if outer is None or outer in counterparts:
            scopes[name] = None if outer is None else counterparts[outer]
        elif outer in scopes:
            scopes[name] = scopes[outer]
    return scopes


def _single_functions(entries: Mapping[str, Entry], counterparts: Mapping[str, str]) -> Iterator[str]:
    """Yield unmatched module calls that are one function: they call it alone, bear its name and have no parameters."""
    called: dict[str, list[EntryName]] = {}
    for entry in entries.values():
        if entry.parsed is not None and entry.parsed.direction == FORWARD and entry.parent is not None:
            called.setdefault(entry.parent, []).append(entry.parsed)
    for name, functions in called.items():
        module = entries.get(name)
        if module is None or module.parsed is None or name in counterparts:
            continue
        if len(functions) > 1 or functions[0].is_module:
            continue
        named = map(_plain, functions[0].name.split("."))
        if _plain(module.parsed.class_name) in named and not module.in_state("parameters"):
            yield name


def _plain(name: str) -> str:
    """``max_pool2d`` as ``MaxPool2d``."""
    return name.replace("_", "").lower()


def scope_of(call: str | None) -> Hashable | None:
    """Return (path, class, call) of a module's entry, () outside of all; None for any other entry."""
    parsed = parse_entry(call) if call is not None else None
    if call is not None and parsed is not None and parsed.is_module:
        return parsed.name, parsed.class_name, parsed.index or 0
    return () if call is None else None
