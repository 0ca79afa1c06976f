"""Frameworks: the only folder that imports mindspore or torch, each where it is asked for; here none is imported."""

from __future__ import annotations

#: What is imported → what a user calls it; the extra that brings it, which the folder here and our module bear as well.
FRAMEWORKS = {"mindspore": ("MindSpore", "mindspore"), "torch": ("PyTorch", "pytorch")}


def explain_missing(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return ``error``, with how to install the framework where it is one that is missing."""
    if error.name not in FRAMEWORKS:
        return error
    name, extra = FRAMEWORKS[error.name]
    return ModuleNotFoundError(
        f'{name} is not installed, and recording needs it: pip install "msprobe-ms[{extra}]"; '
        "the commands compare and recover work without",
        name=error.name,
    )
