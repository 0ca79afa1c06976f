"""Frameworks: the only folder that imports mindspore or torch, each where it is asked for; here none is imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.interruptions import calls_into
from msprobe_ms.support.translation import tr, tr_list

if TYPE_CHECKING:
    from msprobe_ms.frameworks.api_calls import ApiRunner

#: What is imported → what a user calls it; the extra that brings it, which the folder here and our module bear as well.
FRAMEWORKS = {"mindspore": ("MindSpore", "mindspore"), "torch": ("PyTorch", "pytorch")}
for each in FRAMEWORKS:
    calls_into(each)


def explain_missing(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return ``error``, with how to install the framework where it is one that is missing."""
    if error.name not in FRAMEWORKS:
        return error
    name, extra = FRAMEWORKS[error.name]
    return ModuleNotFoundError(
        tr(
            '{name} is not installed, and recording needs it: pip install "msprobe-ms[{extra}]"; the '
            "commands compare and recover work without",
            name=name,
            extra=extra,
        ),
        name=error.name,
    )


#: Base class of all modules → the framework whose it is, as it is imported.
_MODULES = {"torch.nn.modules.module.Module": "torch", "mindspore.nn.cell.Cell": "mindspore"}


def whose_module(value: object) -> tuple[str, str] | None:
    """Return what users call the framework whose module this is, and our module for it; None of what is no module."""
    for base in type(value).__mro__:
        if found := _MODULES.get(f"{base.__module__}.{base.__qualname__}"):
            name, ours = FRAMEWORKS[found]
            return name, f"msprobe_ms.{ours}"
    return None


#: ``framework`` of dump.json → where the class is that calls its APIs.
_RUNNERS = {
    "mindspore": ("mindspore.api_runner", "MindSporeRunner"),
    "mindtorch": ("msadapter_api_runner", "MSAdapterRunner"),
    "pytorch": ("pytorch.api_runner", "PyTorchRunner"),
}


def runner(framework: str) -> ApiRunner:
    """Import a framework, as dump.json names it, and return what calls its APIs one at a time.

    :raises UsageError: no framework of that name is known, or another one stands in its place
    :raises ModuleNotFoundError: it is not installed
    """
    return runner_class(framework)()


def runner_class(framework: str) -> Callable[[], ApiRunner]:
    """Import a framework, and neither ask it for a device nor compute with it; raises as ``runner``."""
    if framework not in _RUNNERS:
        raise UsageError(
            tr(
                "framework {framework} is not known; known are {known}",
                framework=repr(framework),
                known=tr_list(_RUNNERS),
            )
        )
    module, name = _RUNNERS[framework]
    try:
        found: Callable[[], ApiRunner] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as error:
        raise explain_missing(error) from None
    return found
