"""Example arguments of APIs, by name: those of MindSpore and of PyTorch, functions and methods, share most of them.

Where one framework, or one prefix, takes others, its examples stand under ``Prefix.name``, ``torch.Prefix.name``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments


@dataclass(frozen=True)
class Draw:
    """A tensor whose values are drawn when an example is used."""

    make: Callable[[np.random.Generator], np.ndarray]


def floats(*shape: int, low: float = -2.0, high: float = 2.0) -> Draw:
    return Draw(lambda generator: generator.uniform(low, high, shape).astype(np.float32))


def positive(*shape: int) -> Draw:
    return floats(*shape, low=0.2, high=3.0)


def unit(*shape: int) -> Draw:
    return floats(*shape, low=-0.9, high=0.9)


def share(*shape: int) -> Draw:
    return floats(*shape, low=0.05, high=0.95)


def integers(*shape: int, low: int = 0, high: int = 3, dtype: str = "int64") -> Draw:
    """Integers from ``low`` up to, and without, ``high``."""
    return Draw(lambda generator: generator.integers(low, high, shape).astype(dtype))


def bools(*shape: int) -> Draw:
    return Draw(lambda generator: generator.random(shape) > 0.5)


def given(values: Any, dtype: str = "float32") -> Draw:
    return Draw(lambda generator: np.array(values, dtype))


def regular(*shape: int) -> Draw:
    """A square matrix, or several, far from a singular one."""
    return Draw(lambda generator: (generator.uniform(-1, 1, shape) + 3 * np.eye(shape[-1])).astype(np.float32))


def definite(size: int) -> Draw:
    """A symmetric positive definite matrix."""

    def make(generator: np.random.Generator) -> np.ndarray:
        half = generator.uniform(-1, 1, (size, size))
        return (half @ half.T + size * np.eye(size)).astype(np.float32)

    return Draw(make)


def complexes(*shape: int) -> Draw:
    return Draw(
        lambda generator: (generator.uniform(-2, 2, shape) + 1j * generator.uniform(-2, 2, shape)).astype(np.complex64)
    )


def distribution(*shape: int) -> Draw:
    """Probabilities along the last axis."""

    def make(generator: np.random.Generator) -> np.ndarray:
        values = generator.uniform(0.1, 1, shape)
        return (values / values.sum(-1, keepdims=True)).astype(np.float32)

    return Draw(make)


def log_distribution(*shape: int, axis: int = -1) -> Draw:
    def make(generator: np.random.Generator) -> np.ndarray:
        values = generator.uniform(-2, 2, shape)
        return (values - np.log(np.exp(values).sum(axis, keepdims=True))).astype(np.float32)

    return Draw(make)


def with_nan(*shape: int) -> Draw:
    def make(generator: np.random.Generator) -> np.ndarray:
        values = generator.uniform(-2, 2, shape).astype(np.float32)
        values.flat[1] = np.nan
        return values

    return Draw(make)


class Example:
    """One call."""

    def __init__(self, *positional: Any, **keywords: Any) -> None:
        self.positional, self.keywords = positional, keywords

    def arguments(self, name: str) -> Arguments:
        """Return the arguments with values drawn by the API's name: every argument draws others."""
        generator = np.random.default_rng(zlib.crc32(name.encode()))

        def drawn(value: Any) -> Any:
            if isinstance(value, Draw):
                values = value.make(generator)
                return TypedArray(str(values.dtype), values)
            if isinstance(value, (tuple, list)) and not isinstance(value, TypedArray) and not hasattr(value, "_fields"):
                return type(value)(drawn(each) for each in value)
            return value

        return Arguments(
            tuple(drawn(each) for each in self.positional), {key: drawn(each) for key, each in self.keywords.items()}
        )


#: Name → its examples.
Table = Mapping[str, tuple[Example, ...]]


def table(groups: Mapping[str, Example | tuple[Example, ...]]) -> dict[str, tuple[Example, ...]]:
    """Return the examples by name; a key of ``groups`` has several names, apart by spaces."""
    found: dict[str, tuple[Example, ...]] = {}
    for names, examples in groups.items():
        for name in names.split():
            found[name] = found.get(name, ()) + (examples if isinstance(examples, tuple) else (examples,))
    return found


def examples_of(
    tables: Mapping[str, tuple[Example, ...]], framework: str, prefix: str, api: str
) -> tuple[Example, ...]:
    """Return the examples of an API; ``add_`` has those of ``add``, a primitive those of the function of its name."""
    if prefix == "Primitive":
        return _of_primitive(tables, api.rpartition(".")[2])
    plain = api.rstrip("_") if not api.startswith("__") else api
    for name in dict.fromkeys((api, plain)):
        own = f"torch.{prefix}.{name}" if framework == "pytorch" else f"{prefix}.{name}"
        for key in (own, name):
            if key in tables:
                return tables[key]
    return ()


def _of_primitive(tables: Mapping[str, tuple[Example, ...]], operator: str) -> tuple[Example, ...]:
    """Without those that name arguments: primitives take them in their order."""
    if f"Primitive.{operator}" in tables:
        return tables[f"Primitive.{operator}"]
    for prefix in ("Functional.", ""):
        for name, examples in tables.items():
            if name.startswith(prefix) and name[len(prefix) :].replace("_", "") == operator.lower():
                return tuple(each for each in examples if not each.keywords)
    return ()
