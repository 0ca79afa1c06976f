"""Parameters of one side alone that hold the very numbers of one that the other side has alone: the same, renamed."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.weights.model import Weight


def renamed(targets: Iterable[Weight], goldens: Iterable[Weight]) -> dict[str, str]:
    """Name in the target → name in the golden, where on either side one parameter alone has these numbers.

    Of constants, and of numbers that several share, nobody can tell whose they are. One is in memory at a time.
    """
    targets, goldens = list(targets), list(goldens)
    shapes = {weight.shape for weight in targets} & {weight.shape for weight in goldens}
    ours, theirs = (_by_content(side, shapes) for side in (targets, goldens))
    return {names[0]: theirs[key][0] for key, names in ours.items() if len(names) == len(theirs.get(key, ())) == 1}


def _by_content(weights: Iterable[Weight], shapes: set[tuple[int, ...]]) -> dict[bytes, list[str]]:
    found: dict[bytes, list[str]] = {}
    for weight in weights:
        if weight.shape not in shapes:
            continue
        try:
            array = weight.load()
        except (DumpFormatError, MemoryError):
            continue  # what cannot be read is told elsewhere
        if array.size > 1 and (array != array.flat[0]).any():
            found.setdefault(_content(array), []).append(weight.name)
    return found


def _content(array: np.ndarray) -> bytes:
    digest = blake2b(f"{array.dtype} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.digest()
