"""Wrappers around a framework's functions and tensor methods: put in place at start, gone after stop."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.interface.apis import Namespace
from msprobe_ms.recording.calls import CallTaker, Subject
from msprobe_ms.recording.hooks.api_list import ApiList
from msprobe_ms.recording.hooks.communication import Communication
from msprobe_ms.recording.hooks.early_imports import EarlyBindings
from msprobe_ms.recording.hooks.layers import layer_patch
from msprobe_ms.recording.hooks.operators import PrimitiveHooks
from msprobe_ms.support.patching import Patch, apply_all, do_all, replaced_by, undo_all

#: Names of APIs that change their arguments, and of functions of ``mindspore.ops`` that update a Parameter given first.
_IN_PLACE = re.compile(r"__i(?!n)\w+__|__(set|del)item__|(?!__)\w*[^_]_|inplace_\w+|assign\w*|set_\w+|copy_")
_IN_PLACE_FUNCTIONS = re.compile(r"scatter_(nd_)?(add|sub|mul|div|max|min|update)|index_add|(bernoulli|normal|random)_")


@cache
def writes_in_place(prefix: str, name: str) -> bool:
    """Whether an API of this name changes its arguments, which must then be the caller's own objects.

    >>> [writes_in_place("Tensor", name) for name in ("add_", "__iadd__", "__invert__", "add")]
    [True, True, False, False]
    """
    return bool(_IN_PLACE.fullmatch(name) or (prefix == "Functional" and _IN_PLACE_FUNCTIONS.fullmatch(name)))


class ApiHooks:
    """The wrappers of one debugger, made once. ``install`` and ``remove`` may be repeated."""

    def __init__(self, framework: Framework, apis: ApiList, *, layers: bool = False, primitives: bool = True) -> None:
        self._framework = framework
        #: What they were made of.
        self.chosen = apis
        self._recorder: CallTaker | None = None
        self._patches = [*self._make_patches(apis), *(Patch(*each) for each in framework.beside_wrappers())]
        if layers:
            self._patches.append(layer_patch(framework, lambda: self._recorder))
        self._primitives = PrimitiveHooks(framework) if primitives else None
        self._early = EarlyBindings()
        self._copies = framework.clean_copies()
        self._models: Any = None
        self._custom: dict[tuple[int, str], Patch] = {}

    def install(self, recorder: CallTaker, models: Any = None) -> None:
        """Bring calls of the listed APIs to ``recorder`` until ``remove``; ``models`` name the operators they hold."""
        self._recorder = recorder
        if self._copies is not None:
            self._copies.install()
        apply_all(self._patches)
        if self._primitives is not None:
            self._primitives.install(recorder, models)
        self._models = models
        self._install_early()

    def _install_early(self) -> None:
        if not self._framework.finds_early_imports:
            return
        # A function that stands under several names goes by the first.
        wrappers = {id(pair[0]): pair for pair in reversed(replaced_by(self._patches))}
        models = self._models if isinstance(self._models, (list, tuple)) else [self._models]
        given = [model for model in models if model is not None]
        self._early.install(wrappers, (each for model in given for _, each in self._framework.named_modules(model)))

    def remove(self) -> None:
        """Put the framework's own functions back; wrappers somebody still holds only pass calls on."""
        self._models = self._recorder = None
        copies = [] if self._copies is None else [self._copies.remove]
        primitives = [] if self._primitives is None else [self._primitives.remove]
        do_all([self._early.remove, *primitives, partial(undo_all, self._patches), *copies])

    def register(self, holder: Any, name: str, prefix: str) -> None:
        """Wrap one more callable, ``holder.name``, under another prefix if it was registered before."""
        self.unregister(holder, name)
        base = f"{prefix}.{name}"
        subject = Subject(base, is_module=False, writes_in_place=writes_in_place(prefix, name))
        patch = self._custom[id(holder), name] = Patch(holder, name, partial(self._wrap, subject))
        self._patches.append(patch)
        if self._recorder is not None:
            patch.apply()

    def unregister(self, holder: Any, name: str) -> None:
        patch = self._custom.pop((id(holder), name), None)
        if patch is not None:
            patch.undo()
            self._patches.remove(patch)

    def _make_patches(self, apis: ApiList) -> Iterator[Patch]:
        subjects: dict[str, Subject] = {}
        for space, names in apis.apis.items():
            for name in names:
                if not callable(getattr(space.holder, name, None)):
                    continue  # another version of the framework
                base = f"{space.prefix}.{name}"
                if base not in subjects:
                    subjects[base] = self._subject(space, name)
                subject = subjects[base]
                yield Patch(space.holder, name, partial(self._wrap, subject))

    def _subject(self, space: Namespace, name: str) -> Subject:
        communication = None
        if space.communicates:
            communication = Communication(getattr(space.holder, name), name, self._framework.group)
        return Subject(
            f"{space.prefix}.{name}",
            is_module=False,
            writes_in_place=writes_in_place(space.prefix, name),
            communication=communication,
        )

    def _wrap(self, subject: Subject, original: Callable[..., Any]) -> Callable[..., Any]:
        function = self._framework.direct(original)

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            recorder = self._recorder
            if recorder is None:
                return function(*args, **kwargs)
            try:
                return recorder.run(subject, function, args, kwargs)
            except (MemoryError, RecursionError) as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                    raise
                recorder.errors.untold = True
            return function(*args, **kwargs)  # where not even the recorder can be called

        return wrapper

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """A compiler reads user code by its names: there it must find the framework's functions, not ours."""
        patches = [patch for patch in self._patches if patch.in_module and patch.applied]
        try:
            do_all([self._early.remove, partial(undo_all, patches)])
            yield
        finally:
            apply_all(patches)
            if patches:
                self._install_early()
