"""The calls of a dump with their values, as a script or a notebook looks at them; tensors are read when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from msprobe_ms.dump.model import Entry, Item, Tensors
from msprobe_ms.support.errors import MissingTensorError
from msprobe_ms.support.translation import tr


class RecordedValue:
    """One value of a call: a tensor's statistics, its numbers when asked for; or a plain value."""

    def __init__(self, item: Item, tensors: Tensors) -> None:
        self._item = item
        self._tensors = tensors
        #: ``Cell.fc1.Dense.forward.0.output.0``.
        self.name = item.name
        #: As dump.json has them: ``Float32`` or ``torch.float32``, a tuple of sizes.
        self.dtype, self.shape = item.dtype, item.shape
        self.maximum, self.minimum, self.mean, self.norm = item.maximum, item.minimum, item.mean, item.norm
        #: CRC-32 of the numbers, where ``summary_mode`` is ``md5``.
        self.md5 = item.md5

    @property
    def value(self) -> Any:
        """A plain value (a number, a text, a shape); None for a tensor and where there was nothing."""
        if self._item.kind != "value":
            return None
        return self._item.shape if self._item.maximum is None else self._item.maximum

    def numpy(self) -> np.ndarray:
        """The tensor, read from its file now; bfloat16 and float8 as float32.

        Raises MissingTensorError when none was stored (task ``statistics``), DumpFormatError when its file is damaged.
        """
        if self._item.kind != "tensor":
            raise MissingTensorError(
                tr(
                    "{name} holds no tensor but {other_name}; .value gives a plain value",
                    name=self.name,
                    other_name=repr(self),
                )
            )
        if self._item.data_name is None:
            how = tr('record(…, task="tensor") stores tensors')
            raise MissingTensorError(
                tr("{name}: no tensor was stored, only its figures; {how}", name=self.name, how=how)
            )
        return self._tensors.load(self._item)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        item = self._item
        if item.kind == "null":
            return "nothing"
        if item.kind == "value":
            return f"{item.type} {self.value}"
        statistics = (("Max", item.maximum), ("Min", item.minimum), ("Mean", item.mean), ("Norm", item.norm))
        shown = " ".join(f"{name} {number:.6g}" for name, number in statistics if isinstance(number, (int, float)))
        return f"{item.dtype} {item.shape} {shown}".rstrip()


class RecordedCall(Mapping[str, RecordedValue]):
    """One entry of a recording: ``input.0``, ``output.0``, ``parameters.weight`` … → its value."""

    def __init__(self, entry: Entry, tensors: Tensors) -> None:
        self.name = entry.name
        #: The enclosing module's entry, and the lines that made the call, innermost first.
        self.parent = entry.parent
        self.stack = entry.stack
        self._values = {item.suffix: RecordedValue(item, tensors) for item in entry.items}

    def __getitem__(self, suffix: str) -> RecordedValue:
        try:
            return self._values[suffix]
        except KeyError:
            raise KeyError(f"{self.name} has {', '.join(self._values) or 'nothing'}, not {suffix!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "\n".join([self.name, *(f"  {suffix}: {value!r}" for suffix, value in self._values.items())])
