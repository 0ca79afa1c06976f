"""Check single values of a configuration, and say what is wrong with them."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msprobe_ms.support.text import show, show_path, suggestion

#: ``rank`` and ``step`` select at most this many numbers (the msprobe family's bound).
MOST_NUMBERS = 1_000_000

NUMBERS = 'an integer of 0 or more, or an inclusive range such as "4-6"'

#: 18 digits keep every number within 64 bits.
_SPAN = re.compile(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?")
_LARGEST = 10**18 - 1


class Rejected(ValueError):
    """Mistakes in a value: each the place below the value (``(2,)`` = its third member) and a text."""

    def __init__(self, *mistakes: tuple[tuple[int | str, ...], str]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


def one_of(*accepted: str, planned: Sequence[str] = ()) -> Callable[[object], object]:
    """Return a check for one of ``accepted``; ``planned`` are known to the msprobe family but do not work here yet."""

    def check(value: object) -> object:
        if isinstance(value, str) and value in accepted:
            return value
        reason = "is not supported yet" if isinstance(value, str) and value in planned else "is not accepted"
        raise Rejected(((), f"{show(value)} {reason}; use one of {', '.join(accepted)}{suggestion(value, accepted)}"))

    return check


def numbers(value: object) -> frozenset[int]:
    """The members of ``rank`` or ``step``: integers, digit strings and inclusive ranges; a string is one of these.

    >>> sorted(numbers([0, "3", "5-7"]))
    [0, 3, 5, 6, 7]
    """
    if isinstance(value, str):
        selected, problem = _span(value)
        if problem:
            raise Rejected(((), problem))
        return _bounded([selected])
    if not isinstance(value, (list, tuple, set, frozenset, range)):
        raise Rejected(((), f'{show(value)} is not accepted; use a list, such as [0, 2, "4-6"], or [] for all'))
    if len(value) > MOST_NUMBERS:
        raise Rejected(((), _too_many()))
    checked = [_span(member) for member in value]
    mistakes = [((place,), problem) for place, (_, problem) in enumerate(checked) if problem]
    if mistakes:
        raise Rejected(*mistakes)
    return _bounded([selected for selected, _ in checked])


def _span(member: object) -> tuple[range, str]:
    """What one member selects, and what is wrong with it ("" when nothing is)."""
    if isinstance(member, int) and not isinstance(member, bool) and 0 <= member <= _LARGEST:
        return range(member, member + 1), ""
    found = _SPAN.fullmatch(member) if isinstance(member, str) else None
    if not found:
        return range(0), f"{show(member)} is not accepted; use {NUMBERS}"
    first = int(found[1])
    last = int(found[2] or found[1])
    if last < first:
        return range(0), f'{show(member)} ends before it starts; use "{last}-{first}"'
    return range(first, last + 1), ""


def _bounded(spans: list[range]) -> frozenset[int]:
    if sum(map(len, spans)) > MOST_NUMBERS:  # before anything is expanded
        raise Rejected(((), _too_many()))
    return frozenset(number for span in spans for number in span)


def _too_many() -> str:
    return f"more than {MOST_NUMBERS} numbers are not accepted; use fewer, or [] for all"


#: Arguments of other debuggers of the family, and where their matter goes here.
_ELSEWHERE = {
    "model": "the network goes to start(model)",
    "token_range": "it goes to start(model, token_range)",
    "rank_id": "it goes to start(model, rank_id=…)",
    "config": "the file is config_path",
}


def unknown_arguments(unknown: Iterable[str]) -> str:
    """Describe arguments that ``PrecisionDebugger`` does not know, a line each."""
    accepted = ("config_path", "task", "dump_path", "level", "step")
    lines = []
    for name in unknown:
        hint = _ELSEWHERE.get(name, "every other key goes into the file that config_path names")
        lines.append(f"PrecisionDebugger: {name}: unknown argument{suggestion(name, accepted)}; {hint}")
    return "\n".join([*lines, f"accepted are {', '.join(accepted)}"])


def is_range(value: object) -> bool:
    """Whether ``value`` is ``[first, last]``, two integers from 0 up in this order."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return False
    return all(isinstance(end, int) and not isinstance(end, bool) for end in value) and 0 <= value[0] <= value[1]


def writable_folder(path: Path) -> Path:
    """Return ``path``, absolute, once files can be written there; creates nothing that stays.

    Raises `Rejected`, or `OSError`/`ValueError` for a path the system cannot take at all.
    """
    path = Path(os.path.abspath(path))
    existing = _nearest_existing(path)
    if not existing.is_dir():
        unusable = f"{show_path(path)} is not usable: " if existing != path else ""
        raise Rejected(((), f"{unusable}{_what_is(existing)}; use a folder, or a new path"))
    try:
        # Asking the kernel is the one check that holds for root, read-only mounts and kernel file systems alike.
        with tempfile.TemporaryFile(dir=existing):
            return path
    except OSError as error:
        place = f"{show_path(existing)}: {error.strerror}"
        raise Rejected(
            ((), f"{show_path(path)} cannot be written ({place}); use a folder this user may write")
        ) from None


def _nearest_existing(path: Path) -> Path:
    for candidate in (path, *path.parents):
        try:
            os.lstat(candidate)
        except (FileNotFoundError, NotADirectoryError):
            continue
        return candidate
    return path


def _what_is(path: Path) -> str:
    kind = "a link to nothing" if stat.S_ISLNK(os.lstat(path).st_mode) and not path.exists() else "a file"
    return f"{show_path(path)} is {kind}"


def beside_or_here(path: Path, config_file: Path) -> Path:
    """Return ``path``, absolute, below the configuration's folder if it is a file there, else the working folder."""
    places = list(dict.fromkeys(Path(os.path.abspath(folder / path)) for folder in (config_file.parent, Path.cwd())))
    for place in places:
        if place.is_file():
            return place
    looked = " and ".join(show_path(place) for place in places)
    raise Rejected(((), f"{show_path(path)} is not a file (looked for {looked}); use the path of a yaml file"))
