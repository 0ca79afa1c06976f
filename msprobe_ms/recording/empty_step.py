"""Why a step has no entries, in words for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msprobe_ms.config.vocabulary import MODULE_LEVELS
from msprobe_ms.frameworks.base import Framework

if TYPE_CHECKING:
    from msprobe_ms.config import Config


def why_empty(config: Config, framework: Framework, model: Any, *, opened: bool, called: bool, compiled: bool) -> str:
    """The probable reason; "" where `misses` says which key selected nothing.

    ``opened`` says whether recording ever began (a window of tokens may never have come), ``called`` whether anything
    was called that could have been recorded, ``compiled`` whether a graph ran that is none at this level.
    """
    if not opened:
        return "the model was not called as often as token_range says"
    if called:
        modes = "" if "all" in config.data_mode else ", ".join(sorted(config.data_mode))
        return f"what was called has nothing that data_mode [{modes}] keeps" if modes else ""
    if compiled:
        return f"what was called ran as a compiled graph. {framework.how_to_uncompile}, or use level L1 or mix"
    if config.level not in MODULE_LEVELS:
        what = "kernel" if config.level == "L2" else "API that level L1 records"
        return f"no {what} was called between start and stop"
    models = model if isinstance(model, (list, tuple)) else [model]
    names = " and ".join(type(each).__name__ for each in models)
    if not any(name for each in models for name, _ in framework.named_modules(each)):
        have = "have" if len(models) > 1 else "has"
        return f"{names} {have} no modules inside, and the network itself has no entry; use level L1 or mix"
    return f"no module of {names} was called between start and stop; is it the network that was given to start?"
