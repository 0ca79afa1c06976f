from collections.abc import Callable, Sequence
from typing import Any

def entry(
    name: str, parent: str | None, site: int | None, stays: bool, fields: Sequence[tuple[str, Any]], /
) -> tuple[bytes, tuple[str | int, ...], int] | None: ...
def record(
    place: tuple[int, int, int], kind: bytes, payload: bytes, crc32: Callable[..., int], checksum: int, /
) -> tuple[bytes, int, int] | None: ...
