"""Repeat single calls within a training, with other arguments: what the task free_benchmark asks of a framework."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from msprobe_ms.arrays.changes import Change, last_bit_flipped, nearby

#: Largest number and smallest subnormal one, by dtype (IEEE 754; bfloat16 has the exponents of float32).
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4028e38, "float64": 1.7976e308}
_SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}

#: Differences of this many smallest numbers are rounding below the normal ones.
_ROUNDING = 16

#: Elements up to which NumPy compares in float64.
SMALL = 1 << 16

#: dtypes that improve_precision widens.
NARROW = ("float16", "bfloat16")

#: Restores the state of a random generator.
Restore = Callable[[], None]


def bounds_of(dtype: str) -> tuple[float, float]:
    """Return up to which difference results of a dtype only round, below its normal numbers, and its largest number."""
    return _ROUNDING * _SMALLEST[dtype], LARGEST[dtype]


def first_and_last(axes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the places of the first element, or first of the first row, and of the last."""
    return ((0,), (-1,)) if axes == 1 else ((0, 0), (-1, -1))


class Repeater(ABC):
    """What repeats calls. Nothing here changes a tensor of the training, or the state of a generator for good."""

    # -- tensors ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def float_name(self, tensor: Any) -> str | None:
        """Return ``float16``, ``bfloat16``, ``float32`` or ``float64``; None of any other tensor."""

    @abstractmethod
    def is_plain(self, tensor: Any) -> bool:
        """Whether it is a dense tensor of the framework's own class that may be copied and read."""

    def version(self, tensor: Any) -> int | None:
        """Return how often the tensor was written; None where nothing tells."""
        return None

    @abstractmethod
    def memory(self, tensor: Any) -> object:
        """Return what two tensors have in common that show the same elements in the same way."""

    @abstractmethod
    def storage(self, tensor: Any) -> object:
        """Return what a tensor has in common with its views."""

    @abstractmethod
    def detached(self, tensor: Any) -> Any:
        """Return a tensor outside of every gradient graph, with the same memory."""

    def kept(self, tensor: Any) -> Any:
        """Return a copy that stays when the script writes to the tensor; made while a backward runs."""
        return self.copy(tensor)

    @abstractmethod
    def size(self, tensor: Any) -> int:
        """Return the bytes of a tensor's elements."""

    @abstractmethod
    def alias(self, tensor: Any) -> Any:
        """Return the tensor outside of every gradient graph; a copy where a call may write to it and nothing tells."""

    @abstractmethod
    def copy(self, tensor: Any) -> Any:
        """Return a copy outside of every gradient graph."""

    def moved(self, tensor: Any, seed: int, ulps: int) -> Any:
        """Return a copy whose elements are ``ulps`` units in the last place away (`arrays.changes.nearby`)."""
        return self.with_bits(tensor, lambda bits, name: nearby(bits, name, seed, ulps))

    def flipped(self, tensor: Any) -> Any:
        """Return a copy in which the last bit of every element is the other."""
        return self.with_bits(tensor, last_bit_flipped)

    @abstractmethod
    def with_bits(self, tensor: Any, change: Callable[[Any, str], Any]) -> Any:
        """Return a copy of a floating-point tensor with changed bits: ``change`` of them as integers, and the dtype."""

    @abstractmethod
    def exchanged(self, tensor: Any) -> Any:
        """Return a copy in which the first element, or first of the first row, stands in the last place, and the last
        in the first; None of a tensor with one element, or without any."""

    @abstractmethod
    def widened(self, tensor: Any) -> Any:
        """Return the tensor as float32, in the gradient graph where it is in one."""

    @abstractmethod
    def on_cpu(self, tensor: Any) -> Any:
        """Return the tensor on the host, in the gradient graph where it is in one."""

    @abstractmethod
    def like(self, tensor: Any, original: Any) -> Any:
        """Return a result in the dtype and on the device of another, in the gradient graph where it is in one."""

    @abstractmethod
    def magnitudes(self, tensor: Any) -> Any:
        """Return the absolute values, outside of every gradient graph."""

    @abstractmethod
    def measure(self, original: Any, other: Any, limit: float, noise: float = 0.0) -> Change:
        """Compare two results of one shape (`arrays.changes.measure`)."""

    # -- calls -----------------------------------------------------------------------------------------------------

    #: Whether a call may be differentiated while a backward of the training runs.
    differentiates_in_backward: bool
    #: Why calls cannot run on the host, a sentence; None where they can.
    no_cpu: str | None = None

    def generators(self, values: Sequence[Any]) -> Callable[[], Restore]:
        """Return what takes the state of the framework's random generators and of those among ``values``."""
        return _no_state

    def draws(self, prefix: str, name: str) -> bool:
        """Whether an API of this name draws numbers from a state that cannot be put back."""
        return False

    def at_full_precision(self) -> AbstractContextManager[Any]:
        """Return a context in which nothing is cast to a narrow dtype that the script does not cast itself."""
        return nullcontext()

    def casting(self) -> Callable[[], AbstractContextManager[Any]]:
        """Return what makes contexts in which arguments are cast as they are here; a backward runs elsewhere."""
        return nullcontext

    def casts(self) -> bool:
        """Whether the framework casts arguments to narrow dtypes here."""
        return False

    def is_made(self, tensor: Any) -> bool:
        """Whether a call made the tensor, and did not only hand on a leaf that it was given."""
        return True

    @abstractmethod
    def watch_gradient(self, tensor: Any, hook: Callable[[Any], None]) -> None:
        """Have ``hook`` told what gradient goes into the node that made a tensor, whatever the script's hooks do; and
        what it raises, which would end the backward."""

    @abstractmethod
    def gradients(
        self,
        function: Callable[[Sequence[Any]], Sequence[Any]],
        tensors: Sequence[Any],
        output_gradients: Sequence[Any],
    ) -> Sequence[Any]:
        """Call ``function`` with ``tensors`` and return its gradients for each; None where none reaches.

        ``output_gradients``: one for each tensor that it returns; None where none came.
        """


def one_of(number: int, hook: Callable[[Any], None]) -> Callable[[Sequence[Any]], None]:
    """Return what tells ``hook`` of the gradient of that number among those of a node, and of what telling raises."""

    def tell(gradients: Sequence[Any]) -> None:
        try:
            hook(gradients[number])
        except Exception as error:
            hook(error)

    return tell


def _no_state() -> Restore:
    return lambda: None


@contextmanager
def host_generators_kept() -> Iterator[None]:
    """Put the state of Python's and NumPy's generators back afterwards."""
    own, numpys = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(own)
        np.random.set_state(numpys)
