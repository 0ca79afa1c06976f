"""What users put around PyTorch's operations, and how this package keeps its own operations out of their sight.

These are function modes and dispatch modes, tensor subclasses that are told of functions, and profilers.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache, wraps
from operator import is_
from types import MethodDescriptorType, WrapperDescriptorType
from typing import Any, NamedTuple

import torch
from torch import _C
from torch._C import _autograd
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    handle_torch_function,
    has_torch_function,
)
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode, _push_mode

from msprobe_ms.frameworks import quiet
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.stand_in import genuine

_no_functions = _C.DisableTorchFunction
_grad_is_enabled, _enable_grad = _C.is_grad_enabled, _C._set_grad_enabled
#: Whether modes and classes are told of functions; not in the oldest releases.
_told_functions = getattr(_C, "_get_torch_function_state", bool)
_tell_functions = getattr(_C, "_set_torch_function_state", bool)
#: Whether modes are told of what is asked of any tensor now; in the oldest releases nobody says.
tells_of_questions = getattr(_C, "_is_torch_function_mode_enabled", _told_functions)
_profiled = _autograd._profiler_enabled
_dispatch_modes = _C._len_torch_dispatch_stack
#: Whether what stands for a kernel gives the shape of its result, with fake tensors taken for those of no device.
_in_stand_in = getattr(_C, "_meta_in_tls_dispatch_include", bool)


def is_fake() -> bool:
    """Whether operations of this thread run on fake tensors, to learn what they would give."""
    if not _dispatch_modes():
        return bool(_in_stand_in())
    fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensorMode", None)
    return fake is not None and any(isinstance(mode, fake) for mode in _get_current_dispatch_mode_stack())


def unseen() -> AbstractContextManager[Any]:
    """Return a context for operations of this package, of which nobody is told."""
    # As a rule one written in C: nothing interrupts its beginning and its end.
    return _away() if _dispatch_modes() or _profiled() else _no_functions()


def fill_tables() -> None:
    """Have PyTorch make its tables of functions, which it does once, when first asked, without our wrappers in them."""
    with warnings.catch_warnings():  # of functions that are deprecated, which nobody called
        warnings.simplefilter("ignore")
        for function in list(vars(torch.overrides).values()):
            if hasattr(function, "cache_clear"):
                function()


class Quiet(quiet.Quiet):
    """A context for what is computed, which enters no gradient graph. It is for inside of `unseen`: modes see it."""

    __slots__ = ("_functions", "_grad", "_modes")

    def __init__(self) -> None:
        self._grad, self._functions = _grad_is_enabled(), _told_functions()
        self._modes = _get_current_dispatch_mode_stack() if _dispatch_modes() else ()

    def __enter__(self) -> None:
        _enable_grad(False)

    def __exit__(self, *raised: Any) -> None:
        _enable_grad(self._grad)

    def restore(self) -> None:
        if _grad_is_enabled() is not self._grad:
            with _no_functions():
                _enable_grad(self._grad)
        _tell_functions(self._functions)
        if self._modes or _dispatch_modes():
            _DISPATCH.put_back(self._modes)
        if _profiled():
            _autograd._enable_record_function(True)


class _Modes(NamedTuple):
    """One of PyTorch's stacks of modes."""

    present: Callable[[], Sequence[Any]]
    pop: Callable[[], Any]
    push: Callable[[Any], None]

    def put_back(self, modes: Sequence[Any]) -> None:
        """Have it hold ``modes``; what else is there was left by something that was interrupted."""
        while (there := self.present()) and not (len(there) <= len(modes) and all(map(is_, there, modes))):
            self.pop()
        for mode in modes[len(there) :]:
            self.push(mode)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Have it hold none meanwhile."""
        # Two stacks: where something interrupts the end of the one, there is the other.
        modes = self.present()
        with ExitStack() as first, ExitStack() as second:
            for stack in (first, second):
                stack.callback(self.put_back, modes)
            self.put_back(())
            yield


_DISPATCH = _Modes(_get_current_dispatch_mode_stack, _pop_mode, _push_mode)
_FUNCTION = _Modes(_get_current_function_mode_stack, _C._pop_torch_function_stack, _C._push_on_torch_function_stack)


@contextmanager
def _away() -> Iterator[None]:
    """Take dispatch modes off and have the profiler look away."""
    with _no_functions(), _DISPATCH.away(), ExitStack() as first, ExitStack() as second:
        if _profiled():
            for stack in (first, second):
                stack.callback(_autograd._enable_record_function, True)
            _autograd._enable_record_function(False)
        yield


def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls ``function`` and tells users' modes and classes of it, not of the wrapper in its place.

    Methods of tensors that are written in C++ tell of what stands under their name.
    """
    if not isinstance(function, (MethodDescriptorType, WrapperDescriptorType)):
        return function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        overriding: Sequence[Any] | None = None
        try:
            if has_torch_function(args):
                told, names_tensors = _told_by(function)
                overriding = args if names_tensors else [each for each in args if type(each) is not torch.Tensor]
        except (MemoryError, RecursionError):  # of ours: the function itself tells, under its wrapper's name
            pass
        if overriding is None:
            return function(*args, **kwargs)
        return handle_torch_function(told, overriding, *args, **kwargs)

    return call


class _Probe(TorchFunctionMode):
    """Gives back what it is told, and does nothing."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function, bool(types)


_PROBED = torch.empty(1, device="cpu")


def _told_by(method: Callable[..., Any]) -> tuple[Callable[..., Any], bool]:
    """What a method says was called, ``mul`` where it is ``__mul__``, and whether it names `torch.Tensor` as a type."""
    try:
        return _probed(method)
    except (MemoryError, RecursionError):  # which says nothing of the method
        return method, False


@cache
def _probed(method: Callable[..., Any]) -> tuple[Callable[..., Any], bool]:
    with _FUNCTION.away():
        for args in ((_PROBED,), (_PROBED, _PROBED), (_PROBED, 0, _PROBED)):
            try:
                with _Probe():
                    found = method(*args)
            except (MemoryError, RecursionError):
                raise
            except Exception as error:
                if interrupts(error):
                    raise
                continue
            if isinstance(found, tuple):
                return genuine(found[0]), found[1]
    return method, False


def beside_wrappers() -> list[tuple[Any, str, Callable[[Any], Any]]]:
    """Return ``(holder, attribute, wrap)`` of what functions written in Python call to tell of themselves by name."""
    holders = (torch.nn.functional, torch.functional, torch._tensor)
    return [(each, "handle_torch_function", _telling_of_functions) for each in holders]


def _telling_of_functions(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def tell(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        with suppress(MemoryError, RecursionError):
            function = genuine(function)
        return original(function, *args, **kwargs)

    return tell
