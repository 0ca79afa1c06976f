"""Files of tensors that hold the bytes of the elements as they lie in memory, with something before and behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, NamedTuple


class BytesWriter(NamedTuple):
    """Writes a file from the bytes of a tensor's elements, in C order.

    ``before`` and ``after`` are how many bytes stand around those, ``around`` gives them; all of it is told by the
    dtype, the shape and the elements.
    """

    before: int
    after: int
    around: Callable[[memoryview | bytes], tuple[bytes, bytes]]

    def __call__(self, file: BinaryIO, data: memoryview | bytes) -> None:
        """Write the file. Raises OSError."""
        head, tail = self.around(data)
        file.write(head)
        file.write(data)
        file.write(tail)
