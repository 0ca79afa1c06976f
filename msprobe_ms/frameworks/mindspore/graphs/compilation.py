"""Cells inside MindSpore's compiled graphs: what is compiled into graphs, and when, whatever brings values out.

Nothing stays on a Cell. While a graph is compiled, and only then, the ``construct`` of each Cell is one that has the
real one between taps. Such graphs have a key of their own, so that MindSpore goes back to the graph without taps as
soon as they are off.
"""

from __future__ import annotations

import functools
import re
import types
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import mindspore
from mindspore import nn

from msprobe_ms.frameworks.graph_observer import Described, GraphObserver, Layout, Tapped, Unknown
from msprobe_ms.frameworks.mindspore.graphs.marking import MarkedGraphs, plain_construct
from msprobe_ms.frameworks.mindspore.graphs.seeds import next_seeds, put_back
from msprobe_ms.frameworks.mindspore.training import networks_of
from msprobe_ms.support.interruptions import interrupts, suppress_own
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr

_FLOATS = ("Float16", "Float32", "Float64", "BFloat16", "Complex64", "Complex128")

#: Operators, length in front, as a graph that is written out names them; other names begin with the same letters.
_BRANCH = re.compile(rb"\x06Switch(?![A-Za-z])|\x0bSwitchLayer(?![A-Za-z])")
#: Names of nodes; those of gradients MindSpore made itself, and they write into nothing of a Cell's.
_WRITES = re.compile(rb"[!-~]*/Inplace\w+-op\d+")
_DRAWS = re.compile(
    rb"[\x00-\x3f](Dropout(?:2D|3D|Ext|GenMask|GenMaskExt)?|Standard(?:Normal|Laplace)|(?:Uniform|Rand|Multinomial"
    rb"|Bernoulli|Normal)(?:[A-Z]\w*|om\w*|int\w*|perm\w*|n\w*|_\w*)?)(?![A-Za-z])"
)


class Parts(NamedTuple):
    """``construct(original, module, names, parameters)`` and ``hook(module, name, shape)``, both for the parser."""

    construct: Callable[[Any, int, tuple[str, ...], tuple[Any, ...]], Callable[..., Any]]
    hook: Callable[[int, str, tuple[int, ...]], Callable[[Any], Any]]


class CompiledTaps(MarkedGraphs):
    """The taps of one debugger. Compiled graphs outlive its steps, and so does this."""

    @functools.cached_property
    def _parts(self) -> Parts:
        """What is compiled in; made when something is compiled, so that a process without graphs has none of it."""
        return self._made_parts()

    @abstractmethod
    def _made_parts(self) -> Parts: ...

    def __init__(self, tapped: Tapped) -> None:
        super().__init__()
        self._tapped = tapped
        self._observer: GraphObserver | None = None
        self._modules: list[tuple[str, Any]] = []
        #: Sets of modules ever tapped: a graph compiled for one of them is not run for another.
        self._sets: dict[tuple[tuple[str, int], ...], int] = {}
        self._set = -1
        self._has_told = False

    # -- on and off ------------------------------------------------------------------------------------------------

    def install(self, modules: Sequence[tuple[str, Any]], observer: GraphObserver) -> None:
        self._observer = observer
        self._modules = list(modules)
        self._set = self._sets.setdefault(tuple((name, id(cell)) for name, cell in modules), len(self._sets))
        self._mark_graphs(cell for _, cell in modules)

    def remove(self) -> None:
        super().remove()
        self._modules = []

    def forget(self) -> None:
        self._observer = None

    # -- compiling -------------------------------------------------------------------------------------------------

    def _compiling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(executor: Any, compiled: Any, args: Any, kwargs: Any, phase: str, *others: Any) -> Any:
            plain = functools.partial(original, executor, compiled, args, kwargs)
            gradient_outside = ".grad." in phase
            seeds = seeds_after = next_seeds()
            # As it ran before recording, or else compiled without callbacks for this.
            operators = self._compiled_as(executor, phase.replace(self._marking, ""))
            if not operators:
                plain(f"{phase}.plain", *others)
                operators = self._compiled_as(executor, f"{phase}.plain", failed=self._failed)
                seeds_after = next_seeds()
                with suppress_own(Exception):  # what it holds goes with the process otherwise
                    executor.del_net_res(None, {f"{phase}.plain"})
            try:
                put_back(seeds)
                if not self._may_be_tapped(operators, gradient_outside=gradient_outside):
                    return plain(phase, *others)
                self._tell_what_to_expect(compiled)
                try:
                    with self.tapping(gradient_outside=gradient_outside):
                        return plain(phase, *others)
                except Exception as error:
                    if interrupts(error):
                        raise
                    # Once more without us; mistakes of the user's were raised before.
                    put_back(seeds)
                    result = plain(phase, *others)
                    self._failed(error, tr("Cells in a graph that does not compile with callbacks in it"))
                    return result
            finally:
                put_back(seeds_after)

        return compile

    def _tell_what_to_expect(self, compiled: Any) -> None:
        """Say once, before MindSpore warns of callbacks that it optimized away itself, that this is no mistake."""
        if not self._has_told:
            self._has_told = True
            logger.info(
                tr(
                    "MindSpore compiles {what} as a graph, and msprobe_ms records the Cells in it by callbacks in the "
                    "graph. If MindSpore warns 'Some side effect nodes were eliminated by mistake', ignore it",
                    what=self._named(compiled),
                )
            )

    def _named(self, compiled: Any) -> str:
        """What a user calls a Cell, as the dump does, or a function; of MindSpore's own the networks that it runs."""
        if isinstance(compiled, nn.Cell):
            known = {id(cell): name for name, cell in self._modules}
            return known.get(id(compiled), type(compiled).__name__)
        if str(getattr(compiled, "__module__", "")).startswith("mindspore."):
            networks = [type(each).__name__ for each in networks_of(compiled, None)]
            return tr("a step of {networks}", networks=listed(networks)) if networks else tr("a part of this step")
        name = getattr(compiled, "__qualname__", "").rpartition("<locals>.")[2]
        return tr("the function {name}", name=name) if name else tr("a part of this step")

    @property
    def _marking(self) -> str:
        """What the phases of graphs end with that are compiled for these modules."""
        return f"{self._mark}.{self._set}"

    @staticmethod
    def _compiled_as(executor: Any, phase: str, failed: Callable[[Exception, str], None] | None = None) -> bytes:
        """The operators of the graph that was compiled as ``phase``; none where there is no such graph."""
        try:
            return executor.get_func_graph_proto(phase, "mind_ir") or b""
        except Exception as error:
            if failed is not None:
                failed(error, tr("a compiled graph"))
            return b""

    def _may_be_tapped(self, operators: bytes, *, gradient_outside: bool) -> bool:
        """Whether callbacks leave the graph of these operators as it is; if not, it is said.

        In branches and loops, where the gradient is taken outside of the graph, callbacks make MindSpore 2.10 fail in
        backward, or worse, not fail and give other gradients. What an operator writes into a Cell's argument it would
        write into what a callback handed on.
        """
        why = None
        if not operators:
            why = tr("a function that MindSpore does not show")
        elif any(b"Gradients/" not in node for node in _WRITES.findall(operators)):
            why = tr("a function that writes into a tensor in place")
        elif gradient_outside and _BRANCH.search(operators):
            why = tr("a function with branches or loops that depend on tensors, whose gradient is taken outside of it")
        if why is not None and self._observer is not None:
            self._observer.untold(None, why)
        elif self._observer is not None and (drawn := _DRAWS.search(operators)):
            self._observer.notice(
                tr(
                    "a compiled graph draws random numbers ({primitive}): MindSpore keeps their sequence with the "
                    "graph, and recorded steps run one of their own, so that they draw others than without "
                    "recording; a dropout with p=0 draws none",
                    primitive=drawn[1].decode(),
                )
            )
        return why is None

    @contextmanager
    def tapping(self, *, gradient_outside: bool) -> Iterator[None]:
        """Every Cell's ``construct``, and hooks on its parameters' gradients, as long as something is compiled.

        Where the gradient is taken outside of the graph, there is but a part of it inside; Python sees the whole.
        """
        before: list[tuple[Any, Any]] = []
        hooks: list[Any] = []
        parts = self._parts
        try:
            for module, (_, cell) in enumerate(self._modules):
                held = vars(cell)
                before.append((cell, held.get("construct")))
                original = plain_construct(cell)
                parameters = [(name, each) for name, each in cell._params.items() if each is not None]
                if self._tapped.gradients and not gradient_outside:
                    trained = [(name, each) for name, each in parameters if each.requires_grad]
                    hooks += [each.register_hook(parts.hook(module, name, each.shape)) for name, each in trained]
                if not self._tapped.parameters:
                    parameters = []
                if cell.has_bprop and self._tapped.gradients and self._observer is not None:
                    self._observer.untold(module, tr("its gradients, for which it has a bprop of its own"))
                names, values = tuple(name for name, _ in parameters), tuple(each for _, each in parameters)
                construct = parts.construct(original, module, names, values)
                held["construct"] = types.MethodType(construct, cell)
            yield
        finally:
            for hook in hooks:
                hook.remove()
            for cell, construct in before:
                vars(cell).pop("construct", None)
                if construct is not None:
                    vars(cell)["construct"] = construct

    @staticmethod
    def is_float(dtype: Any) -> bool:
        return dtype_text(dtype) in _FLOATS

    def _failed(self, error: Exception, where: str) -> None:
        if self._observer is not None:
            self._observer.failed(error, where)


def dtype_text(dtype: Any) -> str:
    """``Float32``; the compiler also asks before it knows, with something that is no dtype, and then again."""
    return str(dtype) if isinstance(dtype, mindspore.common.dtype.Type) else "Unknown"


def layout_of(described: Any) -> Layout:
    """What `describe` of the compiled source wrote, as a layout."""
    if described is None:
        return None
    kind = described[0]
    if kind == "tensor":
        dtype = dtype_text(described[1])
        shape = None if described[2] is None else tuple(described[2])
        return Described(dtype, shape, dtype in _FLOATS)
    if kind == "list":
        return [layout_of(each) for each in described[1]]
    if kind == "dict":
        return {str(key): layout_of(each) for key, each in described[1]}
    return described[1] if kind == "constant" else Unknown.VALUE
