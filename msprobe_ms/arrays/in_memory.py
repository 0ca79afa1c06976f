"""Elements of a framework's tensors where they lie in memory, as Python and numpy see them: nothing is copied."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from types import GetSetDescriptorType
from typing import Any

import numpy as np

from msprobe_ms.arrays.dtypes import widen
from msprobe_ms.arrays.one_pass import KINDS, TABLE, Elements, Places, Told, elements_at

#: What numpy sees of the elements of each kind: numbers, or what stands for them.
_DTYPES = {kind: np.dtype("uint16" if name == "bfloat16" else name) for name, kind in KINDS.items()}
_DTYPES[TABLE] = np.dtype("uint8")
_BFLOAT16 = KINDS["bfloat16"]

#: PyMemoryView_FromMemory of Python's C API, and its flag for memory that is not written to.
_view = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)
_READ_ONLY = 0x100


def bytes_of(elements: Elements) -> memoryview | None:
    """Return the bytes of the elements, to read; None where they do not lie one behind the other in C order."""
    if elements.strides is not None:
        return None
    found: memoryview = _view(elements.address, math.prod(elements.shape) * _DTYPES[elements.kind].itemsize, _READ_ONLY)
    return found


def array_of(elements: Elements) -> np.ndarray:
    """Return the elements as an array of their shape, to read: a view of their memory, but for bfloat16 and float8,
    which become float32."""
    address, kind, shape, strides, values, _ = elements
    dtype = _DTYPES[kind]
    size = math.prod(shape) * dtype.itemsize
    if strides is not None:
        size = dtype.itemsize + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
    found: np.ndarray = np.ndarray(shape, dtype, _view(address, size, _READ_ONLY), strides=strides)
    if kind == _BFLOAT16:
        return np.asarray(widen(found, "bfloat16"))  # numpy makes a scalar of what has no dimension
    return found if values is None else np.asarray(np.frombuffer(values, np.float32)[found])


class InMemory:
    """Asks a framework where the elements of its tensors lie, as `one_pass.leaves` does in C."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._expected = [(_function(ask), found) for ask, found in places.expected]
        self._dtype, self._storage, self._held, self._offset = map(
            _function, (places.dtype, places.storage, places.held, places.offset)
        )
        self._is_contiguous, self._shape, self._strides, self._address = map(
            _function, (places.is_contiguous, places.shape, places.strides, places.address)
        )
        self._begin = None if places.begin is None else _function(places.begin)
        #: Whether a tensor requires a gradient, as its leaf says it.
        self.requires_grad = (lambda _: None) if places.requires_grad is None else _function(places.requires_grad)

    def elements(self, tensor: Any) -> Elements | None:
        """Return where the elements of a tensor of one of the ``types`` lie; None for what is to be looked at closer.

        Raises what the framework raises.
        """
        places, own = self.places, tensor.__dict__
        if own and (places.instead is None or not places.instead.isdisjoint(own)):
            return None
        for ask, expected in self._expected:
            if ask(tensor) is not expected:
                return None
        kind = places.kinds.get(self._dtype(tensor))
        shape = tuple(self._shape(tensor))
        if kind is None or (shape and min(shape) <= 0):  # one that is not known is negative
            return None
        strides, extent = None, math.prod(shape)
        if not self._is_contiguous(tensor):
            strides = tuple(self._strides(tensor))
            extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        storage = self._storage(tensor)
        if self._begin is not None and not self._begin(storage):
            return None
        if (self._offset(tensor) + extent) * kind.itemsize > self._held(storage):
            return None
        return elements_at(self._address(tensor), kind, shape, strides)


def _function(told: Told) -> Callable[[Any], Any]:
    return told.__get__ if isinstance(told, GetSetDescriptorType) else told
