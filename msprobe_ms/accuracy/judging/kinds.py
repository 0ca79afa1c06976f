"""How an API computes its results, which says what a correct one may be off by (``kinds.yaml``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from pathlib import Path

from msprobe_ms.accuracy.judging.model import ApiKey
from msprobe_ms.support.translation import tr
from msprobe_ms.support.yaml_files import read_texts

#: Bytes that the lists may have.
_LARGEST_FILE = 2**18


class Kind(str, Enum):
    """A way of computing."""

    EXACT = "exact"
    POINTWISE = "pointwise"
    CANCELLING = "cancelling"
    REDUCTION = "reduction"
    PRODUCT = "product"
    OTHER = "other"

    __str__ = str.__str__


def kind_word(kind: Kind) -> str:
    """Return a way of computing as a page tells it."""
    words = {
        Kind.EXACT: tr("exact"),
        Kind.POINTWISE: tr("pointwise"),
        Kind.CANCELLING: tr("cancelling"),
        Kind.REDUCTION: tr("reduction"),
        Kind.PRODUCT: tr("product"),
        Kind.OTHER: tr("other"),
    }
    return words[kind]


def kind_of(api: ApiKey) -> Kind:
    """Return how an API computes what it gives, or the gradients it hands back."""
    forward = _find(api.last, "forward")
    if not api.is_backward:
        return forward
    listed = _find(api.last, "backward")
    if listed is not Kind.OTHER:
        return listed
    return Kind.OTHER if forward in (Kind.EXACT, Kind.REDUCTION) else forward


def terms(kind: Kind, elements: int | None, outputs: int) -> float:
    """Return how many terms are summed for one of ``outputs`` elements, at most.

    ``elements``: of the largest tensor that goes in. Of a product of an m × k and a k × n matrix they are
    max(mk, kn), so that over √(mn) they are at least k.
    """
    if elements is None or not outputs:
        return 1.0
    if kind is Kind.OTHER:
        return max(1.0, elements)
    return max(1.0, elements / (math.sqrt(outputs) if kind is Kind.PRODUCT else outputs))


def _find(name: str, direction: str) -> Kind:
    found = _kinds()[direction]
    plain = plain_name(name)
    if plain not in found and name.startswith("__") and name[2:3] in ("i", "r"):
        plain = plain[1:]  # __iadd__, __radd__
    return found.get(plain, Kind.OTHER)


def plain_name(name: str) -> str:
    """Return what is the same for ``masked_fill``, ``masked_fill_`` and ``MaskedFill``."""
    return name.replace("_", "").lower()


@lru_cache(maxsize=1)
def _kinds() -> Mapping[str, Mapping[str, Kind]]:
    content = read_texts(Path(__file__).with_name("kinds.yaml"), _LARGEST_FILE)
    return {
        direction: {plain_name(api): Kind(kind) for kind, apis in kinds.items() for api in apis}
        for direction, kinds in content.items()
    }
