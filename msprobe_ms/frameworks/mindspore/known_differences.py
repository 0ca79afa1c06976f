"""Where MindSpore is known to compute something else than it says. No framework is needed to read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from msprobe_ms.dump.dialects import PRIMITIVE
from msprobe_ms.support.translation import tr

_LIST = Path(__file__).with_suffix(".yaml")


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """What is wrong with an API on the CPU.

    ``direction``  ``forward``, ``backward`` or ``both``
    ``reason``     a sentence
    ``size``       the largest error seen, as a share of the largest value; None where the call raises
    """

    direction: str
    reason: str
    size: float | None


def known_difference(prefix: str, api: str) -> KnownDifference | None:
    """Return what is known to be wrong with what entries ``{prefix}.{api}.{n}`` call; None for most.

    >>> known_difference("Functional", "selu").direction
    'backward'
    """
    name = api.rpartition(".")[2] if prefix == PRIMITIVE else api
    return _read().get(f"{prefix}.{name}")


@cache
def _read() -> Mapping[str, KnownDifference]:
    listed = yaml.safe_load(_LIST.read_text(encoding="utf-8"))
    return {
        name: KnownDifference(each["direction"], tr(each["reason"]), each.get("size"))
        for names, each in listed.items()
        for name in names.split(", ")
    }
