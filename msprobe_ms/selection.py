"""Which calls of a step are recorded, and which of their fields: list, scope and data_mode (§7 of the format)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msprobe_ms.names import BACKWARD, FORWARD, PARAMETERS_GRAD

#: Which side of ``data_mode`` a field of an entry stands on.
_SIDE = {
    "input_args": "input",
    "input_kwargs": "input",
    "parameters": "input",
    "input": "input",
    "output": "output",
    PARAMETERS_GRAD: "output",
}


class FieldFilter:
    """``data_mode``: a field is kept when ``all``, its direction or its side is named; without ``values`` no field is,
    but the calls whose fields would be."""

    def __init__(self, data_mode: Collection[str], *, values: bool = True) -> None:
        self._values = values
        self._keeps = {
            (direction, field): bool({"all", direction, side} & set(data_mode))
            for direction in (FORWARD, BACKWARD)
            for field, side in _SIDE.items()
        }

    def keeps(self, direction: str, field: str) -> bool:
        return self._values and self._keeps[direction, field]

    def keeps_any(self, direction: str) -> bool:
        fields = ("input", "output", PARAMETERS_GRAD) if direction == BACKWARD else ("input_args", "output")
        return any(self._keeps[direction, field] for field in fields)


class NameList:
    """``list``: a name is accepted when it contains any of the texts; no texts accept everything."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = tuple(texts)

    def accepts(self, name: str) -> bool:
        return not self._texts or any(text in name for text in self._texts)


class Scope:
    """``scope``: the range from the call named first to the call named last, both included, in execution order.

    A call belongs to the range when it *begins* inside it. Lives for one step.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._first: str | None = names[0] if names else None
        self._last: str | None = names[-1] if names else None
        self._open = not names

    def begins(self, name: str) -> bool:
        """Tell that a call begins; whether it belongs to the range."""
        if name == self._first:
            self._open = True
        return self._open

    def ends(self, name: str) -> None:
        """Tell that a call ended."""
        if name == self._last:
            self._open = False
