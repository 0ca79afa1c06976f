"""User code that a compiler reads or runs: left alone by our patches, recorded as one call, or run as plain Python."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any, Protocol

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.compiled_call import CompiledCall
from msprobe_ms.recording.calls import CallTaker, Subject
from msprobe_ms.recording.hooks.communication import CollectiveOperator
from msprobe_ms.recording.hooks.modules import ModuleHooks
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.recording.recorder import Recorder
from msprobe_ms.support.patching import Patch, Patches, PatchHooks
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr


class Suspendable(Protocol):
    """Hooks that can be away for a while."""

    def suspended(self) -> AbstractContextManager[None]: ...


class CompilerCalls:
    """Steps aside in calls that compile user code: hooks are taken off, and nothing called inside is recorded."""

    def __init__(self, framework: Framework, recorder: CallTaker, hooks: Sequence[Suspendable]) -> None:
        self._framework = framework
        self._recorder = recorder
        self._hooks = hooks
        self._patches: dict[tuple[int, str], Patch] = {}
        #: How many calls of compilers are known.
        self._known = 0
        self._installed = False

    def install(self) -> None:
        self._installed = True
        self._apply()

    def remove(self) -> None:
        self._installed = False
        Patches(self._patches.values()).undo()
        self._patches = {}  # each holds this object, which would stay until Python looks for cycles

    def _apply(self) -> None:
        calls = self._framework.compiler_calls()
        known = self._patches
        for call in calls:
            if (id(call.holder), call.name) not in known:
                known[id(call.holder), call.name] = Patch(call.holder, call.name, partial(self._wrap, call.applies))
        self._known = len(known)
        Patches(known.values()).apply()

    def _wrap(self, applies: Callable[..., bool], original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with ExitStack() as away:
                try:
                    if applies(*args, **kwargs):
                        away.enter_context(self._recorder.blind())
                        for hooks in self._hooks:
                            away.enter_context(hooks.suspended())
                except Exception as error:
                    self._recorder.failed(error, "compiling")
                away.callback(self._meet_imported)
                return original(*args, **kwargs)

        return wrapper

    def _meet_imported(self) -> None:
        """Patch what the call has imported."""
        try:
            if self._installed and len(self._framework.compiler_calls()) > self._known:
                self._framework.prepare()
                self._apply()
        except Exception as error:
            self._recorder.failed(error, "compiling")


PREFIX = "Jit"


class JitHooks(PatchHooks):
    """Between ``install`` and ``remove`` compiled graphs are entries, ``Jit.{name}``; what need not be compiled is not.

    What a graph hides is said once, in a warning and in the dump's error log.
    """

    def __init__(self, framework: Framework, calls: GraphCalls) -> None:
        graphs = [Patch(holder, name, calls.wrap) for holder, name in framework.graph_calls()]
        dynamic = [Patch(holder, name, wrap) for holder, name, wrap in framework.dynamic_instead()]
        super().__init__([*graphs, *dynamic])


class GraphCalls:
    """Records calls of compiled graphs."""

    def __init__(
        self,
        framework: Framework,
        recorder: Recorder,
        errors: ErrorLog,
        modules: ModuleHooks | None,
        *,
        entries: bool,
        tapped: bool = False,
        kernels: bool = False,
    ) -> None:
        """``entries`` says whether graphs are recorded themselves; at level L0 only modules are.

        ``tapped`` says that modules inside them are recorded by other means; ``kernels`` that kernels are recorded, not
        API calls, and so also graphs that are no user code, an optimizer's.
        """
        self._framework = framework
        self._recorder = recorder
        self._errors = errors
        self._modules = modules
        self._entries = entries
        self._tapped = tapped
        self._kernels = kernels
        self._subjects: dict[str, Subject] = {}
        self._searched: set[Any] = set()
        #: Whether a graph ran that has no entry.
        self.saw_unrecorded = False

    def wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return what records calls of ``original``, and calls it."""

        @functools.wraps(original)
        def wrapper(executor: Any, /, *args: Any, **kwargs: Any) -> Any:
            subject, unrecorded = None, False
            try:
                compiled = self._described(executor, args)
                if compiled is not None:
                    call = functools.partial(original, executor, *args[: compiled.leading])
                    unrecorded = not self._entries
                    subject = self._subject(compiled) if self._entries else None
                    rest = args[compiled.leading :]
            except Exception as error:
                self._errors.report(error, PREFIX)
            if subject is None:
                result = original(executor, *args, **kwargs)
                self.saw_unrecorded = self.saw_unrecorded or unrecorded  # one that cannot be compiled never runs
                return result
            return self._recorder.run(subject, call, rest, kwargs)

        return wrapper

    def _subject(self, compiled: CompiledCall) -> Subject:
        base = f"{PREFIX}.{compiled.name}"
        if compiled.group is not None:
            return Subject(base, is_module=False, compiled=True, communication=CollectiveOperator(compiled.group))
        return self._subjects.setdefault(compiled.name, Subject(base, is_module=False, compiled=True))

    def _described(self, executor: Any, args: tuple[Any, ...]) -> CompiledCall | None:
        try:
            compiled = self._framework.describe_graph(executor, args)
            if compiled is not None and compiled.frameworks_own:
                return compiled if self._kernels else None
            if compiled is not None and compiled.function not in self._searched:
                self._searched.add(compiled.function)
                self._say_what_is_hidden(compiled)
            return compiled
        except Exception as error:
            self._errors.report(error, PREFIX)
            return None

    def _say_what_is_hidden(self, compiled: CompiledCall) -> None:
        names: list[str] = []
        if not self._tapped:
            names = [(self._modules and self._modules.base_of(module)) or name for name, module in compiled.modules()]
        how = self._framework.how_to_uncompile
        if names:
            self._errors.note(
                tr(
                    "{prefix}.{name} runs as one compiled graph; what is inside has no entries of its own: "
                    "{shown}. {how_to_uncompile}",
                    prefix=PREFIX,
                    name=compiled.name,
                    shown=listed(names, most=20),
                    how_to_uncompile=how,
                )
            )
        elif self._entries and not self._kernels and compiled.group is None:
            self._errors.tell(
                tr(
                    "API calls inside compiled graphs are not recorded; each run of a graph is one call, "
                    "{prefix}.NAME. {how_to_uncompile}",
                    prefix=PREFIX,
                    how_to_uncompile=how,
                )
            )
