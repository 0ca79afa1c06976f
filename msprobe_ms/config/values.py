"""Check the values of a configuration, key by key, and say what is wrong with them."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from msprobe_ms.dump.patterns import PatternError, matcher
from msprobe_ms.support.text import show, show_path, suggestion
from msprobe_ms.support.translation import tr, tr_join, tr_list

#: ``rank`` and ``step`` select at most this many numbers (the msprobe family's bound).
MOST_NUMBERS = 1_000_000
#: Bounds of intervals: each is a column of a table.
MOST_BOUNDS = 1_000

NUMBERS = tr('an integer of 0 or more, or an inclusive range such as "4-6"')

#: 18 digits keep every number within 64 bits.
_SPAN = re.compile(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?")
_LARGEST = 10**18 - 1

#: What is nowhere else.
NOWHERE: Mapping[str, str] = {}


class Rejected(ValueError):
    """Mistakes in a value: each the place below the value (``(2,)`` = its third member) and a text."""

    def __init__(self, *mistakes: tuple[tuple[int | str, ...], str]) -> None:
        super().__init__(mistakes)
        self.mistakes = mistakes


def one_of(*accepted: str, elsewhere: Mapping[str, str] = NOWHERE) -> Callable[[object], object]:
    """Return a check for one of ``accepted``; ``elsewhere`` says of what the msprobe family knows where it is here."""

    def check(value: object) -> object:
        if isinstance(value, str) and value in accepted:
            return value
        reason = elsewhere.get(value, tr("is not accepted")) if isinstance(value, str) else tr("is not accepted")
        raise Rejected(
            (
                (),
                tr(
                    "{value} {reason}; use one of {accepted}{suggestion}",
                    value=show(value),
                    reason=reason,
                    accepted=tr_list(accepted),
                    suggestion=suggestion(value, accepted),
                ),
            )
        )

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
        raise Rejected(
            ((), tr('{value} is not accepted; use a list, such as [0, 2, "4-6"], or [] for all', value=show(value)))
        )
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
        return range(0), tr("{member} is not accepted; use {numbers}", member=show(member), numbers=NUMBERS)
    first = int(found[1])
    last = int(found[2] or found[1])
    if last < first:
        return range(0), tr(
            '{member} ends before it starts; use "{last}-{first}"', member=show(member), last=last, first=first
        )
    return range(first, last + 1), ""


def _bounded(spans: list[range]) -> frozenset[int]:
    if sum(map(len, spans)) > MOST_NUMBERS:  # before anything is expanded
        raise Rejected(((), _too_many()))
    return frozenset(number for span in spans for number in span)


def _too_many() -> str:
    return tr("more than {most_numbers} numbers are not accepted; use fewer, or [] for all", most_numbers=MOST_NUMBERS)


#: The largest bound of an interval of gradients: that of 64 bits.
_LARGEST_BOUND = 2**63 - 1


def bounds(value: object) -> tuple[float, ...]:
    """Check ascending numbers within 64 bits; returns them as they were given. Raises `Rejected`."""
    accepted = tr("use ascending numbers within 64 bits, such as [-1, 0, 1]")
    members = value if isinstance(value, (list, tuple)) else None
    if members is None or len(members) > MOST_BOUNDS:
        raise Rejected(((), tr("{value} is not accepted; {accepted}", value=show(value), accepted=accepted)))
    for place, member in enumerate(members):
        number = isinstance(member, (int, float)) and not isinstance(member, bool)
        if not number or not -_LARGEST_BOUND - 1 <= member <= _LARGEST_BOUND:
            raise Rejected(
                ((place,), tr("{member} is not accepted; {accepted}", member=show(member), accepted=accepted))
            )
    if any(low >= high for low, high in pairwise(members)):
        raise Rejected(((), tr("{value} does not ascend; {accepted}", value=show(value), accepted=accepted)))
    return tuple(members)


#: Arguments of other debuggers of the family, and where their matter goes here.
_ELSEWHERE = {
    "model": tr("the network goes to start(model)"),
    "token_range": tr("it goes to start(model, token_range)"),
    "rank_id": tr("it goes to start(model, rank_id=…)"),
    "config": tr("the file is config_path"),
}


def unknown_arguments(unknown: Iterable[str]) -> str:
    """Describe arguments that ``PrecisionDebugger`` does not know, a line each."""
    accepted = ("config_path", "task", "dump_path", "level", "step", "settings")
    lines = []
    for name in unknown:
        hint = _ELSEWHERE.get(
            name, tr("every other key goes into settings={…}, or into the file that config_path names")
        )
        lines.append(
            tr(
                "PrecisionDebugger: {name}: unknown argument{suggestion}; {hint}",
                name=name,
                suggestion=suggestion(name, accepted),
                hint=hint,
            )
        )
    return tr_join("\n", [*lines, tr("accepted are {accepted}", accepted=tr_list(accepted))])


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
        unusable = tr("{path} is not usable: ", path=show_path(path)) if existing != path else ""
        raise Rejected(
            ((), tr("{unusable}{what_is}; use a folder, or a new path", unusable=unusable, what_is=_what_is(existing)))
        )
    try:
        # Asking the kernel is the one check that holds for root, read-only mounts and kernel file systems alike.
        with tempfile.TemporaryFile(dir=existing):
            return path
    except OSError as error:
        place = f"{show_path(existing)}: {error.strerror}"
        raise Rejected(
            (
                (),
                tr(
                    "{path} cannot be written ({place}); use a folder this user may write",
                    path=show_path(path),
                    place=place,
                ),
            )
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
    kind = tr("a link to nothing") if stat.S_ISLNK(os.lstat(path).st_mode) and not path.exists() else tr("a file")
    return tr("{path} is {kind}", path=show_path(path), kind=kind)


def beside_or_here(path: Path, config_file: Path) -> Path:
    """Return ``path``, absolute, below the configuration's folder if it is a file there, else the working folder."""
    places = list(dict.fromkeys(Path(os.path.abspath(folder / path)) for folder in (config_file.parent, Path.cwd())))
    for place in places:
        if place.is_file():
            return place
    looked = tr_join(tr(" and "), map(show_path, places))
    raise Rejected(
        (
            (),
            tr(
                "{path} is not a file (looked for {looked}); use the path of a file that is there",
                path=show_path(path),
                looked=looked,
            ),
        )
    )


_MOST_SKIPPED = 1_000_000


def pattern(text: str) -> str:
    """A member of ``list`` or ``tensor_list``: a text of the grammar of `msprobe_ms.dump.patterns`."""
    if not text:
        raise Rejected(((), tr('"" is in every name; use a part of one, such as "relu", or [] for all')))
    if problem := pattern_problem(text):
        raise Rejected(((), problem))
    return text


def pattern_problem(text: str) -> str:
    """Return what is wrong with a pattern of names; "" where nothing is."""
    try:
        matcher(text)
    except PatternError as error:
        return f"{show(text)} {error}"
    return ""


#: Numbers of calls from the outermost in; ``*`` is any number, ``**`` one or more of them.
_PLACE = re.compile(r"(?:[0-9]{1,9}|\*\*?)(?:_(?:[0-9]{1,9}|\*\*?))*")


def call_place(text: str) -> str:
    """A member of ``places``: a text of the grammar of `msprobe_ms.recording.selection.places`."""
    if not _PLACE.fullmatch(text):
        accepted = tr('use numbers from 0 up, such as "3", "3_1", or "3_**" for all inside the fourth call')
        raise Rejected(((), tr("{text} is not accepted; {accepted}", text=show(text), accepted=accepted)))
    return text


def skip_count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_SKIPPED:
        return value
    accepted = tr("use an integer n from 0 to {most_skipped}: every n-th call is recorded", most_skipped=_MOST_SKIPPED)
    raise Rejected(((), tr("{value} is not accepted; {accepted}", value=show(value), accepted=accepted)))


def counting(value: object) -> int:
    """Check a number of steps or samples; raises `Rejected`."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_SKIPPED:
        return value
    raise Rejected(
        (
            (),
            tr(
                "{value} is not accepted; use an integer from 1 to {most_skipped}",
                value=show(value),
                most_skipped=_MOST_SKIPPED,
            ),
        )
    )
