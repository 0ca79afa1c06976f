"""What to say when the framework that a script wants recorded is not installed."""

from __future__ import annotations

#: What is imported → what a user calls it, the extra of this package that brings it.
_FRAMEWORKS = {"mindspore": ("MindSpore", "mindspore"), "torch": ("PyTorch", "pytorch")}


def explained(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """``error``, with how to install the framework when it is one that is missing."""
    if error.name not in _FRAMEWORKS:
        return error
    name, extra = _FRAMEWORKS[error.name]
    return ModuleNotFoundError(
        f'{name} is not installed, and recording needs it: pip install "msprobe-ms[{extra}]"; '
        "the commands compare and recover work without",
        name=error.name,
    )
