"""Hooks on modules and their parameters, put on at start, gone after stop; and on the model, to count its calls."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.calls import Subject
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.recording.recorder import Recorder
from msprobe_ms.support.patching import Hooks, do_all, install, remove, taken_off


def named_bases(
    framework: Framework, models: Any, failed: Callable[[Exception], None], *, itself: bool = False
) -> Iterator[tuple[str, Any]]:
    """What entries of each module of one model (or several) start with, ``Cell.fc1.Dense``, and the module.

    A module reachable under two names has the first. The model itself, ``Cell.Net``, is among them where it has
    parameters of its own, or is asked for; where that cannot be told, ``failed`` is given the reason.
    """
    several, seen = isinstance(models, (list, tuple)), set[int]()
    for index, model in enumerate(models if several else [models]):
        head = f"{framework.dialect.module_prefix}.{index}" if several else framework.dialect.module_prefix
        found = _recorded_modules(framework, model, failed)
        for name, module in (*((("", model),) if itself else ()), *found):
            if id(module) not in seen:
                seen.add(id(module))
                yield ".".join(filter(None, (head, name, type(module).__name__))), module


def _recorded_modules(
    framework: Framework, model: Any, failed: Callable[[Exception], None]
) -> Iterable[tuple[str, Any]]:
    try:
        return list(framework.recorded_modules(model))
    except Exception as error:
        failed(error)
        return ((name, module) for name, module in framework.named_modules(model) if name)


class ModuleHooks:
    """The hooks on every module of one model (or several) that has entries."""

    def __init__(
        self, framework: Framework, recorder: Recorder, models: Any, errors: ErrorLog, *, itself: bool = False
    ) -> None:
        self._framework = framework
        self._recorder = recorder
        self._calls = {
            id(module): ModuleCalls(framework, recorder, base, module)
            for base, module in named_bases(framework, models, partial(errors.report, where="start"), itself=itself)
        }
        #: The module whose calls somebody else brings.
        self._handed_over: ModuleCalls | None = None
        self._forward: list[Hooks] = []
        self._parameters: list[Hooks] = []

    def base_of(self, module: Any) -> str | None:
        """What entries of this module start with; None for one that has none."""
        calls = self._calls.get(id(module))
        return None if calls is None else calls.base

    def hand_over(self, module: Any) -> ModuleCalls | None:
        """Put no hooks on this module from here on: the caller brings its calls. None for one that has no entries."""
        self._handed_over = self._calls.get(id(module))
        return self._handed_over

    def install(self, *, parameters: bool = True) -> None:
        """Hook the modules, and their parameters' gradients unless ``parameters`` is False."""
        self._install_forward()
        if parameters:
            self._install_parameters()

    def _install_forward(self) -> None:
        for calls in self._calls.values():
            if calls is not self._handed_over:
                install(calls.hooks(), self._forward)

    def _install_parameters(self) -> None:
        for calls in self._calls.values():
            install(calls.parameter_hooks(), self._parameters)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """A compiler would compile the hooks into the user's graph."""
        forward, parameters = bool(self._forward), bool(self._parameters)
        try:
            do_all([self.remove_forward, self.remove_parameters])
            yield
        finally:
            if forward:
                self._install_forward()
            if parameters:
                self._install_parameters()

    def remove_forward(self) -> None:
        """Take the hooks off the modules; gradients of calls already made still come in."""
        remove(self._forward)

    def remove_parameters(self) -> None:
        """Take the hooks off the parameters."""
        remove(self._parameters)


class ModuleCalls:
    """Brings the calls of one module to the recorder. A module may be called again before its call ends."""

    def __init__(self, framework: Framework, recorder: Recorder, base: str, module: Any) -> None:
        self._framework = framework
        self._recorder = recorder
        self._subject = Subject(base, is_module=True)
        self._module = module

    @property
    def base(self) -> str:
        return self._subject.base

    def hooks(self) -> Sequence[Hooks]:
        return self._framework.hook_module(self._module, self.before, self.after, self.failed)

    def parameter_hooks(self) -> Iterator[Hooks]:
        told = self._recorder.backward.parameter
        for name, parameter in self._framework.parameters(self._module):
            report = partial(told, self._subject.base, name)
            if (hook := self._framework.hook_parameter(parameter, report)) is not None:
                yield hook

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        call = self._recorder.enter(self._subject)
        return (args, kwargs) if call is None else self._recorder.before(call, args, kwargs)

    def after(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        call = self._recorder.innermost(self._subject)
        if call is None:
            return output
        return self._recorder.after(call, args, kwargs, output, partial(self._framework.parameters, self._module))

    def failed(self, error: Exception) -> None:
        self._recorder.failed(error, self.base)


class TokenWindow:
    """Counts the model's calls from 0 and records those of ``tokens`` and nothing else.

    ``recorded`` brings the model's own calls to the recorder: hooks that are put on a module while it is called, or
    taken off, are too late or too early for that call.
    """

    def __init__(
        self,
        framework: Framework,
        model: Any,
        tokens: Container[int],
        calls: Iterator[int],
        open_recording: Callable[[], None],
        close_recording: Callable[[], None],
        recorded: ModuleCalls | None = None,
    ) -> None:
        self._framework = framework
        self._model = model
        self._tokens = tokens
        #: Gives the number of each call; it outlives the window, so that counting goes on after the next `start`.
        self._calls = calls
        self._open = open_recording
        self._close = close_recording
        self._recorded = recorded
        self._hooks: list[Hooks] = []

    def install(self) -> None:
        install(self._framework.hook_module(self._model, self._before, self._after, self._failed), self._hooks)

    def remove(self) -> None:
        remove(self._hooks)

    def suspended(self) -> AbstractContextManager[None]:
        return taken_off(self, installed=bool(self._hooks))

    def _before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if next(self._calls) in self._tokens:
            self._open()
            if self._recorded is not None:
                return self._recorded.before(args, kwargs)
        return args, kwargs

    def _after(self, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        if self._recorded is not None:
            output = self._recorded.after(args, kwargs, output)
        self._close()
        return output

    def _failed(self, error: Exception) -> None:
        if self._recorded is not None:
            self._recorded.failed(error)
