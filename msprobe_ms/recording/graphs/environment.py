"""Environment variables that are changed for a while."""

from __future__ import annotations

import os


class Environment:
    """Sets variables of this process, and puts back what was there."""

    def __init__(self) -> None:
        #: Name → the value before, the value set; None for no value.
        self._changed: dict[str, tuple[str | None, str | None]] = {}

    def set(self, name: str, value: str | None) -> None:
        """Give ``name`` this value; None takes it out."""
        before = self._changed[name][0] if name in self._changed else os.environ.get(name)
        self._changed[name] = (before, value)
        _put(name, value)

    def put_back(self) -> None:
        """As before, but for what somebody else has changed meanwhile."""
        changed, self._changed = self._changed, {}
        for name, (before, value) in changed.items():
            if os.environ.get(name) == value:
                _put(name, before)


def _put(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
