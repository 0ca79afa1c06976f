from collections.abc import Sequence
from typing import Any

def entry(
    name: str, parent: str | None, site: int | None, stays: bool, fields: Sequence[tuple[str, Any]], /
) -> tuple[bytes, list[tuple[str, int]], int] | None: ...
