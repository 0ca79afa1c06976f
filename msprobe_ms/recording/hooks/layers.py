"""Wrapper around the call of any module, which records layers of the framework's own as if each were one function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

from msprobe_ms.dump.dialects import LAYER
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.calls import Subject
from msprobe_ms.recording.recorder import Recorder
from msprobe_ms.support.patching import Patch


def layer_patch(framework: Framework, recorder: Callable[[], Recorder | None]) -> Patch:
    """Return the patch that brings calls of layers, of whatever network, to ``recorder`` while there is one."""
    subjects: dict[type, Subject] = {}

    def subject_of(layer: Any) -> Subject:
        kind = type(layer)
        if kind not in subjects:
            subjects[kind] = Subject(f"{LAYER}.{kind.__name__}", is_module=False)
        return subjects[kind]

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            recording = recorder()
            if recording is None or not framework.is_layer(module):
                return original(module, *args, **kwargs)
            try:
                parameters = partial(framework.parameters, module)
                return recording.run(subject_of(module), partial(original, module), args, kwargs, parameters)
            except (MemoryError, RecursionError) as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                    raise
                recording.errors.untold = True
            return original(module, *args, **kwargs)  # where not even the recorder can be called

        return call

    return Patch(*framework.layer_call(), wrap)
