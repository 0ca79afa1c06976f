"""Cells inside MindSpore's compiled graphs, on the CPU: Python callbacks that are compiled into the graph.

Values pass the callbacks by: a callback gets a copy, and what it returns is only waited for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from msprobe_ms.frameworks.graph_observer import Layout, Place, Tapped, TensorStatistics
from msprobe_ms.frameworks.mindspore.arrays import widened
from msprobe_ms.frameworks.mindspore.graphs.compilation import CompiledTaps, Parts, dtype_text, layout_of
from msprobe_ms.frameworks.mindspore.graphs.source import SINGLE, STATISTICS, compiled_parts
from msprobe_ms.support.translation import tr

#: What callbacks return; nobody reads it.
DONE = np.zeros(1, np.int32)


class MindSporeTaps(CompiledTaps):
    """Taps whose callbacks tell the observer while the graph runs."""

    def __init__(self, tapped: Tapped) -> None:
        super().__init__(tapped)
        #: What the numbers in compiled graphs stand for.
        self._layouts: list[tuple[int, Layout, Layout]] = []
        self._places: list[tuple[Place, int]] = []
        self._parameters: list[tuple[int, str, str, int]] = []

    def _made_parts(self) -> Parts:
        return compiled_parts(self, self._tapped)

    # -- called by the compiler: what it knows gets a number -------------------------------------------------------

    def layout(self, module: int, first: Any, second: Any) -> int:
        """The number of what a call of a module was given (positional, by name) or gave (its result, nothing)."""
        self._layouts.append((module, layout_of(first), layout_of(second)))
        return len(self._layouts) - 1

    def place(self, field: str, path: tuple[Any, ...], is_gradient: bool, dtype: Any, form: int) -> int:
        """The number of a place; ``form`` is how its tensor is handed over."""
        self._places.append((Place(field, tuple(str(key) for key in path), is_gradient, dtype_text(dtype)), form))
        return len(self._places) - 1

    def parameter(self, module: int, name: str, dtype: Any, form: int) -> int:
        """The number of a parameter's gradient."""
        self._parameters.append((module, name, dtype_text(dtype), form))
        return len(self._parameters) - 1

    # -- called by running graphs ----------------------------------------------------------------------------------

    def on_begin(self, layout: np.ndarray) -> np.ndarray:
        if (observer := self._observer) is not None:
            try:
                number = observer.begins(*self._layouts[int(layout[0])])
                return np.array([number], np.int32)
            except Exception as error:
                self._failed(error, tr("a call in a graph"))
        return np.array([-1], np.int32)

    def on_value(self, value: Any, call: np.ndarray, place: np.ndarray) -> np.ndarray:
        if (observer := self._observer) is not None and call[0] >= 0:
            try:
                where, form = self._places[int(place[0])]
                observer.value(int(call[0]), where, unpacked(value, form))
            except Exception as error:
                self._failed(error, tr("a value in a graph"))
        return DONE

    def on_end(self, call: np.ndarray, layout: np.ndarray) -> np.ndarray:
        if (observer := self._observer) is not None and call[0] >= 0:
            try:
                observer.ends(int(call[0]), self._layouts[int(layout[0])][1])
            except Exception as error:
                self._failed(error, tr("a call in a graph"))
        return DONE

    def on_parameter(self, gradient: Any, parameter: np.ndarray) -> np.ndarray:
        if (observer := self._observer) is not None:
            try:
                module, name, dtype, form = self._parameters[int(parameter[0])]
                observer.parameter_gradient(module, name, dtype, unpacked(gradient, form))
            except Exception as error:
                self._failed(error, tr("a parameter's gradient in a graph"))
        return DONE


def unpacked(value: Any, form: int) -> np.ndarray | TensorStatistics:
    """A callback's argument as what it stands for."""
    array = np.asarray(value)
    if form == STATISTICS:
        maximum, minimum, mean, norm, *shape = array.tolist()
        return TensorStatistics(tuple(int(size) for size in shape), maximum, minimum, mean, norm)
    if array.dtype.kind == "V" and array.dtype.itemsize == 2:
        array = widened(array)
    return array.reshape(()) if form == SINGLE else array
