"""Official names of APIs, ``torch.nn.functional.relu``, beside the names of their entries, ``Functional.relu``.

With the number of a call and its direction they name entries, as MetaX's tool writes them::

    torch.nn.Conv1d.6.fwd                Layer.Conv1d.6.forward
    torch.nn.functional.relu.7.bwd       Functional.relu.7.backward
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from msprobe_ms.dump.dialects import LAYER
from msprobe_ms.dump.names import BACKWARD, FORWARD, api_entry, parse_entry

#: Prefix of entries → the place whose APIs they are.
PYTORCH_PLACES: Mapping[str, str] = MappingProxyType(
    {
        "Functional": "torch.nn.functional",
        LAYER: "torch.nn",
        "Tensor": "torch.Tensor",
        "Distributed": "torch.distributed",
        "VF": "torch._VF",
        "Torch": "torch",
    }
)

_DIRECTIONS = {"fwd": FORWARD, "bwd": BACKWARD}
_SHORT = {direction: short for short, direction in _DIRECTIONS.items()}
_CALL = re.compile(r"(?P<api>torch\..+?)\.(?P<number>\d{1,18})\.(?P<direction>fwd|bwd)")


def official_name(entry: str) -> str:
    """Return the official name of an entry's call; the entry itself, where it is no API's.

    >>> official_name("Layer.Conv1d.6.forward"), official_name("Module.conv.Conv1d.forward.0")
    ('torch.nn.Conv1d.6.fwd', 'Module.conv.Conv1d.forward.0')
    """
    parsed = parse_entry(entry)
    if parsed is None or parsed.is_module or parsed.direction not in _SHORT or parsed.prefix not in PYTORCH_PLACES:
        return entry
    return f"{PYTORCH_PLACES[parsed.prefix]}.{parsed.name}.{parsed.index}.{_SHORT[parsed.direction]}"


def entry_of(official: str) -> str | None:
    """Return the entry of a call named officially; None for any other text.

    >>> entry_of("torch.nn.functional.relu.7.bwd"), entry_of("relu")
    ('Functional.relu.7.backward', None)
    """
    found = _CALL.fullmatch(official)
    if found is None or (api := _parts(found["api"])) is None:
        return None
    return api_entry(*api, int(found["number"]), _DIRECTIONS[found["direction"]])


def pattern_of(official: str) -> str | None:
    """Return the pattern of all calls of an API named officially; None for any other text.

    >>> pattern_of("torch.nn.ReLU"), pattern_of("relu")
    ('name-regex(Layer\\\\.ReLU\\\\.\\\\d+\\\\.(forward|backward))', None)
    """
    if (api := _parts(official)) is None:
        return None
    prefix, name = (re.escape(part) for part in api)
    return rf"name-regex({prefix}\.{name}\.\d+\.({FORWARD}|{BACKWARD}))"


def _parts(api: str) -> tuple[str, str] | None:
    """The prefix and the name that entries of an API have; the longest place that fits counts."""
    for prefix, place in sorted(PYTORCH_PLACES.items(), key=lambda each: -len(each[1])):
        head, name = api[: len(place) + 1], api[len(place) + 1 :]
        if head == f"{place}." and re.fullmatch(r"\w+", name):
            return prefix, name
    return None
