from collections.abc import Callable, Mapping, Sequence
from typing import Any

def figures(
    address: int,
    kind: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    tables: bytes | None,
    values: bytes | None,
    first: int,
    /,
) -> tuple[float, float, float, float, bytes | None]: ...
def leaf(
    address: int,
    kind: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None,
    tables: bytes | None,
    values: bytes | None,
    frame: tuple[bytes, ...],
    dumps: Callable[[Any], bytes],
    /,
) -> bytes: ...
def leaves(
    values: Sequence[Any],
    places: tuple[Any, ...],
    frames: Mapping[Any, tuple[bytes, ...]],
    tables: bytes | None,
    numbers: tuple[bytes, ...],
    dumps: Callable[[Any], bytes],
    /,
) -> list[bytes | None] | None: ...
