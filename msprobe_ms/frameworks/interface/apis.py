"""Which functions and operators of a framework are wrapped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Namespace:
    """A module or class whose callables can be wrapped.

    ``path``         dotted name users write, ``mindspore.ops``
    ``prefix``       what entries start with, ``Functional``
    ``holder``       the object whose attributes are replaced
    ``communicates`` whether its functions exchange tensors with other processes
    """

    path: str
    prefix: str
    holder: Any
    communicates: bool = False


class ApiInterface(ABC):
    """Namespaces of functions, and operator objects."""

    @abstractmethod
    def namespaces(self) -> Sequence[Namespace]:
        """Return the namespaces the package's own API list may name."""

    def direct(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what calls a function in whose place a wrapper stands, and tells nobody of the wrapper."""
        return function

    def beside_wrappers(self) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
        """Return ``(holder, attribute, wrap)`` of what is replaced together with APIs, for the same purpose."""
        return ()

    #: Whether functions that user code holds since before `start` are wrapped where it holds them. PyTorch's compiler
    #: watches the globals of what it compiled, and would compile again.
    finds_early_imports: bool = False

    #: File of the operator classes that are not recorded; None where a framework has no operator objects.
    operators_left_out: Path | None = None

    def operator_classes(self) -> Iterable[type]:
        """Classes of operator objects (MindSpore's primitives) that have a ``__call__`` of their own."""
        return ()

    def operator_name(self, operator: Any) -> str:
        """What an operator object is, ``MatMul``; its class, as a rule."""
        return type(operator).__name__

    def operator_attributes(self, operator: Any) -> Mapping[str, Any]:
        """What an operator object was made with, by the names of its constructor's arguments."""
        return {}

    def operators(self, module: Any) -> Iterable[tuple[str, Any]]:
        """Attribute and operator object of those that the module itself holds."""
        return ()

    def operator_group(self, operator: Any) -> Any:
        """The processes this operator exchanges tensors with, as a value that ``special_leaf`` knows; None for most."""
        return None

    def scratch_results(self, operator: str) -> frozenset[int]:
        """Positions of those results of this operator that hold no values, only memory its backward may use."""
        return frozenset()
