"""Every error a user can meet, each naming what happened, where, and what would be accepted."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from msprobe_ms.support.text import for_terminal
from msprobe_ms.support.translation import Message, translated

_Given = TypeVar("_Given")
_Parameters = ParamSpec("_Parameters")


class MsprobeError(Exception):
    """Base of all errors of this package; the command line prints its text and exits with 2.

    Its text names what stands in files, and is printable whatever that is.
    """

    def __str__(self) -> str:
        return for_terminal(super().__str__())

    @property
    def message(self) -> str:
        """The text, which is told in the language of the user where it is shown."""
        return self.args[0] if self.args and isinstance(self.args[0], Message) else str(self)


class ConfigError(MsprobeError):
    """A configuration cannot be used: names the file, the key's path, the value and what is accepted."""


class DumpFormatError(MsprobeError):
    """A dump, tensor or journal file cannot be read: names the file and the place in it."""


class DamagedFileError(DumpFormatError):
    """A file is whole up to some place and damaged from there on, as when its writing was cut off."""


class MissingTensorError(DumpFormatError):
    """An item has no tensor on disk (none recorded, or its file is gone): nothing to compare, but no fault."""


class ContradictionError(DumpFormatError):
    """A tensor file holds something else than its dump says: names the file and both."""


class MappingError(MsprobeError):
    """A mapping file cannot be used: names the file, the key's path and what is accepted."""


class CompareError(MsprobeError):
    """Two dumps cannot be compared as asked: names both sides and what would work."""


class UsageError(MsprobeError):
    """An argument or a call order cannot work: names it and says what would."""


def told_briefly(function: Callable[_Parameters, _Given]) -> Callable[_Parameters, _Given]:
    """Return ``function`` for scripts: an error of ours has its text in the language of the user, and says all there.

    So its traceback ends at the caller.
    """

    @wraps(function)
    def told(*arguments: _Parameters.args, **keywords: _Parameters.kwargs) -> _Given:
        try:
            return function(*arguments, **keywords)
        except MsprobeError as error:
            error.args = (translated(error.message),)
            raise error.with_traceback(None) from None

    return told
