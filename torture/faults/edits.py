"""What a fault changes of a healthy net. Framework-free; ``record_mindspore`` carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Attribute:
    """A plain setting of a Cell; ``cell`` is "" for the net itself."""

    cell: str
    name: str
    value: Any


@dataclass(frozen=True)
class Layer:
    """A layer of MindSpore built with other arguments in the place of a layer of the same class."""

    cell: str
    kind: str
    arguments: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Half:
    """A layer that computes in float16; its output is float32 again where it is ``cast_back``."""

    cell: str
    cast_back: bool = True


@dataclass(frozen=True)
class Weight:
    """A parameter, by its canonical name, loaded wrongly.

    ``how``: ``transposed`` swaps the two ``axes``, of equal size; ``unloaded`` leaves what the framework drew;
    ``gates`` swaps the second quarter or third of its rows with the last.
    """

    name: str
    how: str
    axes: tuple[int, int] = (0, 1)

    @property
    def cell(self) -> str:
        return self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Loss:
    """The cross-entropy with other options; it is no part of the net and not recorded."""

    options: tuple[tuple[str, Any], ...]
    cell: str = ""


Edit = Attribute | Layer | Half | Weight | Loss
