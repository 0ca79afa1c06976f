"""How the tensors of a framework are read and written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from msprobe_ms.arrays.bytes_writer import BytesWriter
from msprobe_ms.arrays.one_pass import Elements, Places
from msprobe_ms.arrays.repetition import Distinct, distinct
from msprobe_ms.arrays.statistics import parts


class TensorInterface(ABC):
    """What a tensor is, how its elements are read, and how it is written."""

    @abstractmethod
    def is_tensor(self, value: Any) -> bool: ...

    @abstractmethod
    def to_numpy(self, tensor: Any) -> np.ndarray:
        """Return the values on the host, in the tensor's shape; bfloat16 as float32. May alias the tensor's memory."""

    def plain(self, tensor: Any) -> Any:
        """Return the tensor as one whose methods are the framework's own; itself where they are."""
        return tensor

    #: Whether users' code is told of what is asked of tensors now, of those of the framework's own classes as well.
    tells_of_questions: Callable[[], bool] = bool

    def is_readable(self, tensor: Any) -> bool:
        """Whether the elements of a tensor are there, in memory of its own; no other may be read."""
        return True

    def components(self, tensor: Any) -> Sequence[Any] | None:
        """Return the tensors that a tensor which is not readable consists of; None for most."""
        return None

    def distinct(self, tensor: Any) -> Distinct:
        """Return what a large tensor that is readable holds; it may show more."""
        return distinct(tensor, tuple(tensor.shape), tensor.stride())

    def on_host(self, tensor: Any) -> Any:
        """Return a tensor with the same elements that is read without waiting for a device; the tensor itself where it
        is one."""
        return tensor

    def copies(self, tensor: Any) -> bool:
        """Whether statistics of the whole tensor would need a copy of it."""
        return True

    def in_parts(self, tensor: Any) -> Iterator[np.ndarray]:
        """Yield what ``to_numpy`` gives in parts, in the order of elements, so that no copy of the whole is held."""
        for index in parts(tuple(tensor.shape)):
            yield self.to_numpy(tensor[index])

    def elements(self, tensor: Any) -> Elements | None:
        """Return where the elements of a tensor lie that can be read there as they are, once they are computed.

        None for others, which are looked at closer: those without memory of their own, of users' classes, on devices,
        and what is read in parts.
        """
        return None

    def places(self) -> Places | None:
        """Return by which functions ``elements`` and ``requires_grad`` are told of most tensors; None where not."""
        return None

    def place(self, tensor: Any, array: np.ndarray) -> tuple[int, int]:
        """Return address and bytes of the memory that holds the tensor; ``array`` is ``to_numpy(tensor)``."""
        return array.__array_interface__["data"][0], array.nbytes

    @abstractmethod
    def dtype_text(self, tensor: Any) -> str: ...

    def device_statistics(self, tensor: Any, *, sketch: bool, md5: bool) -> Any:
        """Max, Min, Mean, Norm, and sketch and checksum where asked for, or what they are computed of, left on the
        device that holds the tensor; the host does not wait. None to have numpy do it on the host."""
        return None

    def read_statistics(self, on_device: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Read Max, Min, Mean, Norm, text of the sketch and checksum of what ``device_statistics`` left, several
        tensors at once."""
        raise NotImplementedError

    def requires_grad(self, tensor: Any) -> bool | None:
        """Return what the leaf says of ``requires_grad``; None leaves the key out."""
        return None

    def special_leaf(self, value: Any) -> dict[str, Any] | None:
        """Return the leaf of a framework's own non-tensor value (dtype, size, process group), or None."""
        return None

    @abstractmethod
    def save_tensor(self, tensor: Any, array: np.ndarray | None, file: BinaryIO) -> None:
        """Write one tensor in the framework's file format; ``array`` is ``to_numpy(tensor)`` if already read."""

    def file_writer(self, elements: Elements) -> BytesWriter | None:
        """Return what writes the same from the bytes of a tensor's elements in C order; None where those are not what
        its file holds."""
        return None

    def detached(self, tensor: Any, array: np.ndarray) -> tuple[Any, np.ndarray | None]:
        """Return both arguments of ``save_tensor``, so that nothing done to ``tensor`` later shows in the file."""
        return None, array.copy()
