"""Intercept operators: MindSpore's primitives, which layers call in place of functions, and kernels (level L2)."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.calls import CallTaker, Subject
from msprobe_ms.recording.hooks.communication import CollectiveOperator
from msprobe_ms.recording.kernel_recorder import KernelRecorder
from msprobe_ms.support.interruptions import suppress_own
from msprobe_ms.support.patching import Hooks, Patch, apply_all, undo_all

PREFIX = "Primitive"

#: Classes of operators that change their arguments.
_IN_PLACE = re.compile(r"Assign\w*|Scatter(?!NdNonAliasing)\w*|Inplace\w*|(Sparse|Fused)?Apply\w+|\w+_")

#: Operators that are held with what is known of them.
_MOST_HELD = 10_000


class PrimitiveHooks:
    """The wrappers of one debugger on the ``__call__`` of operator classes. ``install`` and ``remove`` may be repeated.

    An operator is named after the attribute under which a module of the model holds it, ``Primitive.conv2d.Conv2D``;
    one that no module holds after its class, ``Primitive.Conv2D.Conv2D``. Without a model the modules are those that
    are called.
    """

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._left_out = left_out(framework)
        self._patches: dict[type, Patch] = {}
        #: By identity; the operator is kept with its subject, so that no other takes its number in memory.
        self._by_operator: dict[int, tuple[Any, Subject | None]] = {}
        self._recorder: CallTaker | None = None
        self._module_calls = Patch(*framework.layer_call(), self._wrap_module_call)

    def install(self, recorder: CallTaker, models: Any) -> None:
        """Bring calls of operators to ``recorder`` until ``remove``; ``models`` is a module, several, or None."""
        if self._framework.operators_left_out is None:
            return
        self._recorder = recorder
        if models is None:
            self._module_calls.apply()
        self._name_after_attributes(models)
        # Classes appear as libraries are imported and operators defined.
        for operator_class in [each for each in self._framework.operator_classes() if each not in self._patches]:
            if operator_class.__name__ not in self._left_out:
                self._patches[operator_class] = Patch(operator_class, "__call__", self._wrap)
        apply_all(list(self._patches.values()))

    def remove(self) -> None:
        """Put the classes' own ``__call__`` back."""
        self._recorder = None
        self._by_operator = {}
        undo_all([*self._patches.values(), self._module_calls])

    def _name_after_attributes(self, models: Any) -> None:
        several = models if isinstance(models, (list, tuple)) else [] if models is None else [models]
        for model in several:
            for _, module in self._framework.named_modules(model):
                self._name_operators_of(module)

    def _name_operators_of(self, module: Any) -> None:
        for attribute, operator in self._framework.operators(module):
            if id(operator) in self._by_operator:
                continue  # under two names it goes by the first
            name = self._framework.operator_name(operator)
            subject = None if name in self._left_out else self._subject(f"{PREFIX}.{attribute}.{name}", operator)
            self._by_operator[id(operator)] = operator, subject

    def _wrap_module_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._recorder is not None:
                with suppress_own(Exception):
                    self._name_operators_of(module)
            return original(module, *args, **kwargs)

        return call

    def _subject(self, base: str, operator: Any) -> Subject:
        name = self._framework.operator_name(operator)
        group = self._framework.operator_group(operator)
        return Subject(
            base,
            is_module=False,
            writes_in_place=bool(_IN_PLACE.fullmatch(name)),
            scratch=self._framework.scratch_results(name),
            communication=None if group is None else CollectiveOperator(group),
            attributes=self._framework.operator_attributes(operator),
        )

    def _subject_of(self, operator: Any) -> Subject | None:
        held = self._by_operator.get(id(operator))
        if held is not None:
            return held[1]
        name = self._framework.operator_name(operator)
        subject = None if name in self._left_out else self._subject(f"{PREFIX}.{name}.{name}", operator)
        if len(self._by_operator) < _MOST_HELD:  # a script may make a new one for each call
            self._by_operator[id(operator)] = operator, subject
        return subject

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(operator: Any, /, *args: Any, **kwargs: Any) -> Any:
            recorder, subject = self._recorder, None
            try:
                if recorder is not None and (subject := self._subject_of(operator)) is not None:
                    return recorder.run(subject, functools.partial(original, operator), args, kwargs)
            except (MemoryError, RecursionError) as error:
                if subject is not None and error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                    raise
                if recorder is not None:
                    recorder.errors.untold = True  # there may be nothing left to call anything with
            return original(operator, *args, **kwargs)  # also where not even the recorder can be called

        return wrapper


def left_out(framework: Framework) -> frozenset[str]:
    """Names of the operator classes that are not recorded."""
    return frozenset() if framework.operators_left_out is None else _listed(framework.operators_left_out)


@functools.cache
def _listed(path: Path) -> frozenset[str]:
    """The names in a list of the package's own, which stays the same while the process runs."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return frozenset(name for names in content.values() for name in names)


class KernelHooks:
    """Brings kernels to the recorder."""

    def __init__(self, framework: Framework, recorder: KernelRecorder) -> None:
        self._framework = framework
        self._recorder = recorder
        self._left_out = left_out(framework)
        self._interception: Hooks | None = None

    def install(self) -> None:
        if self._interception is None:
            self._interception = self._framework.intercept_kernels(self._launched)
            self._interception.install()

    def _launched(self, operator: str, inputs: Sequence[Any], launch: Callable[[], Any]) -> Any:
        return launch() if operator in self._left_out else self._recorder.kernel(operator, inputs, launch)

    def remove(self) -> None:
        if self._interception is not None:
            self._interception.remove()
        self._interception = None
