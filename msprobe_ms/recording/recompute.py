"""Whether a call is made a second time, to recompute in backward what forward did not keep."""

from __future__ import annotations

import os
from collections.abc import Collection
from types import CodeType, FrameType


class Recomputation:
    """Tells by the functions through which a framework recomputes: ``(path fragment of the file, function name)``."""

    def __init__(self, functions: Collection[tuple[str, str]]) -> None:
        self._functions = [(part.replace("/", os.sep), name) for part, name in functions]
        self._known: dict[CodeType, bool] = {}

    def runs(self, frame: FrameType | None) -> bool:
        """Whether ``frame`` was reached through one of them."""
        known = self._known
        while frame is not None:
            code = frame.f_code
            recomputes = known.get(code)
            if recomputes is None:
                recomputes = known[code] = any(
                    code.co_name == name and part in code.co_filename for part, name in self._functions
                )
            if recomputes:
                return True
            frame = frame.f_back
        return False
