"""Say why nothing of a step was recorded, as far as that is known."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any

from msprobe_ms.config.vocabulary import MODULE_LEVELS
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.support.translation import tr, tr_count, tr_join, tr_list

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: Characters of an exception that are told.
_LONGEST = 160


class Exceptions:
    """Tells an exception that ended a step from those that came before the step began."""

    def __init__(self) -> None:
        self._before = set(map(id, _raised()))

    def new(self) -> str:
        """Return the exception that the script is handling or ended with, in one line; "" if none is of this step."""
        error = next((each for each in _raised() if each is not None and id(each) not in self._before), None)
        if error is None:
            return ""
        told = traceback.format_exception_only(type(error), error)[-1].strip().partition("\n")[0]
        return told if len(told) <= _LONGEST else told[: _LONGEST - 1] + "…"


def _raised() -> tuple[BaseException | None, BaseException | None]:
    """The exception that is being handled, and the one that the interpreter has printed as it ended the script."""
    return sys.exc_info()[1], getattr(sys, "last_value", None)


def why_empty(
    config: Config, framework: Framework, model: Any, *,
    opened: bool, called: bool, unfinished: str, compiled: bool, error: str,
) -> str:  # fmt: skip
    """The probable reason; "" where `UnusedSettings` says which key selected nothing.

    ``opened`` says whether recording ever began (a window of tokens may never have come), ``called`` whether anything
    was called that could have been recorded, ``unfinished`` which call to be recorded did not return, ``compiled``
    whether a graph ran that is none at this level, ``error`` which exception ended the step.
    """
    if unfinished:
        return _why_unfinished(unfinished, error)
    if not opened:
        return tr("the model was not called as often as token_range says")
    if called:
        modes = "" if "all" in config.data_mode else tr_list(sorted(config.data_mode))
        if modes and error:
            return tr("an exception ended the step before there were values that data_mode [{modes}] keeps ({error})",
                      error=error, modes=modes)  # fmt: skip
        return tr("what was called has nothing that data_mode [{modes}] keeps", modes=modes) if modes else ""
    if compiled:
        return tr(
            "what was called ran as a compiled graph. {how_to_uncompile}, or use level L1 or mix",
            how_to_uncompile=framework.how_to_uncompile,
        )
    if config.level not in MODULE_LEVELS:
        return _why_no_api(kernels=config.level == "L2", error=error)
    models = model if isinstance(model, (list, tuple)) else [model]
    names = tr_join(tr(" and "), (type(each).__name__ for each in models))
    if not any(True for each in models for _ in framework.recorded_modules(each)):
        return tr_count(
            "{names} has no modules inside and no parameters, hence no entry; use level L1 or mix",
            "{names} have no modules inside and no parameters, hence no entry; use level L1 or mix",
            count=len(models),
            names=names,
        )
    return why_no_module(names, error)


def _why_no_api(*, kernels: bool, error: str) -> str:
    if kernels and error:
        return tr("an exception ended the step before any kernel was called ({error})", error=error)
    if kernels:
        return tr("no kernel was called between start and stop")
    if error:
        return tr("an exception ended the step before any API that level L1 records was called ({error})", error=error)
    return tr("no API that level L1 records was called between start and stop")


def why_no_module(names: str, error: str) -> str:
    """Why no module of the networks with these class names was called; ``error`` as in `why_empty`."""
    if error:
        return tr(
            "an exception ended the step before any module of {names} was called ({error})", error=error, names=names
        )
    return tr(
        "no module of {names} was called between start and stop. Either an exception ended the step before that, or "
        "the step calls another network than the one that start was given",
        names=names,
    )


def _why_unfinished(call: str, error: str) -> str:
    if error:
        return tr("an exception ended the step before {call} returned ({error})", call=call, error=error)
    return tr("{call} began but did not return. Either it raised an exception, or stop was called inside it", call=call)
