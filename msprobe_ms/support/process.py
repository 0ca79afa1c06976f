"""What holds for this process alone: whether it is a forked child, its descriptors, garbage collection paused in it."""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EBADF
from fcntl import F_DUPFD_CLOEXEC, fcntl
from functools import cache
from itertools import starmap
from typing import Any, BinaryIO, TypeVar
from weakref import WeakSet

from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.translation import tr

_AnyOpening = TypeVar("_AnyOpening", bound="_Opening")


class ThisProcess:
    """The process in which it was made.

    A forked child (a data loader's worker) inherits hooks and open files but must not write into its parent's dump.
    """

    __slots__ = ("_id",)

    def __init__(self) -> None:
        self._id = os.getpid()

    @property
    def is_mine(self) -> bool:
        """Whether the process that asks is the one that made this, and no forked child of it."""
        return os.getpid() == self._id


#: The first number that is none of standard input, output and error.
_FIRST = 3


class ClosedError(OSError):
    """What was to be written into is closed: whoever closed it has all that it waited for."""


class _Opening:
    """A `Descriptor`, open or closed."""

    __slots__ = ("__weakref__", "_numbers", "_place")

    def __init__(self, opening: Callable[[], int]) -> None:
        """``opening`` gives the number, and is written in C: ``partial(os.open, path, flags)``. Raises what it raises.

        What a signal brings is raised between two steps of Python. There is none from the opening to the list, nor from
        the list to the closing, so that no number is lost, and none closed twice.
        """
        self._numbers: list[int] = []
        self._place: tuple[int, int] | None = None
        _descriptors.add(self)
        self._numbers.extend(starmap(opening, ((),)))
        if self._numbers[0] < _FIRST:  # the process has closed those of its terminal, and writes there all the same
            self._numbers.extend(map(fcntl, self._numbers[:1], (F_DUPFD_CLOEXEC,), (_FIRST,)))
            list(map(os.close, map(self._numbers.pop, (0,))))
        self._place = _place(self._numbers[0])

    @property
    def number(self) -> int:
        """-1 once it is closed.

        Raises OSError where somebody else has closed it, as who becomes a daemon closes all that is open: the number is
        none, or that of another file.
        """
        if not (numbers := self._numbers):
            return -1
        if self._is_elsewhere(number := numbers[0]):
            raise OSError(EBADF, tr("something else has closed it"))
        return number

    @property
    def place(self) -> tuple[int, int, int] | None:
        """The number of an open one, and device and inode of its file; None where the disk does not say."""
        return None if self._place is None else (self._numbers[0], *self._place)

    def as_file(self, mode: str) -> BinaryIO:
        """Return a file in its stead, which closes it."""
        number, files = self.number, list[Any]()
        try:
            files.extend(map(open, map(self._numbers.pop, (0,)), (mode,)))
        finally:
            if not (files or self._numbers):
                self._numbers.append(number)
        self._has_closed()
        return files[0]

    def close(self) -> None:
        """Close it, unless that is done. Raises OSError, and is closed all the same."""
        if self._numbers and self._is_elsewhere(self._numbers[0]):
            self._numbers.clear()
        with suppress(IndexError):
            while True:
                list(map(os.close, map(self._numbers.pop, (0,))))
        self._has_closed()

    def _has_closed(self) -> None:
        """Have no Python run as it is freed: what a signal raises there is lost, the end of a time limit or Ctrl-C."""
        _descriptors.discard(self)
        self.__class__ = _Closed

    def _is_elsewhere(self, number: int) -> bool:
        place = _place(number)
        return place is not None and self._place is not None and place != self._place

    def __enter__(self: _AnyOpening) -> _AnyOpening:
        return self

    def __exit__(self, *raised: Any) -> None:
        self.close()


class Descriptor(_Opening):
    """The number of an open file or folder that forked children do not share; closed when nothing refers to it.

    A lock on a file lasts as long as any process has the same opening of it: a data loader's worker that is left behind
    would go on holding the one of its parent.
    """

    __slots__ = ()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # of memory there may be more again; in the end of all, even a module may be gone
            with suppress(Exception):
                self.close()


class _Closed(_Opening):
    """What a `Descriptor` becomes once it is closed."""

    __slots__ = ()


def _place(number: int) -> tuple[int, int] | None:
    """Tells the file of a descriptor from others, and from none; None where the disk does not say."""
    try:
        state = os.fstat(number)
    except OSError as error:
        if interrupts(error):
            raise
        return (-1, -1) if error.errno == EBADF else None
    return state.st_dev, state.st_ino


#: All that are open in this process.
_descriptors: WeakSet[_Opening] = WeakSet()


def _close_in_child() -> None:
    for descriptor in list(_descriptors):
        with suppress(OSError):
            descriptor.close()


os.register_at_fork(after_in_child=_close_in_child)


def end_with_parent() -> None:
    """Have Linux end this process with the one that began it."""
    set_parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Pause the search for cycles: among the million objects of a dump and its comparison it costs a fifth of all.

    What is not part of a cycle is freed as ever. A child that another thread forks meanwhile searches.
    """
    was_on, thread = gc.isenabled(), threading.get_ident()
    with ExitStack() as first, ExitStack() as second:  # where something interrupts the one's end, there is the other
        if was_on:
            for stack in (first, second):
                stack.callback(_search, thread)
            _pausing.add(thread)
        gc.disable()
        yield


#: The threads that have paused the search for cycles, and are to go on with it.
_pausing: set[int] = set()


def _search(thread: int) -> None:
    _pausing.discard(thread)
    gc.enable()


def _search_in_child() -> None:
    """Go on where a thread has paused the search that is not in this child, as a pool forks from one of its own."""
    for thread in _pausing - {threading.get_ident()}:
        _search(thread)


os.register_at_fork(after_in_child=_search_in_child)


#: What mallopt of glibc calls the size from which on memory is asked of the system piece by piece, and the size from
#: which on what is free behind all that is used is given back.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
#: Bytes from which on an array is one such piece.
_LARGE = 1 << 20


@cache
def return_large_arrays() -> None:
    """Have this process give the memory of large arrays back to the system as soon as they are freed.

    glibc keeps more and more of it, the larger the arrays are that were freed: 25 MB where a million rows are compared.
    Of smaller pieces it keeps a few million bytes: to ask for them again and again takes a thirtieth of a comparison.
    Nothing where the C library is another one.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_TRIM_THRESHOLD, 4 * _LARGE)


def begin_no_threads() -> None:
    """Have numpy, which is yet to be imported, begin no threads for linear algebra, unless the user asks for some.

    They wait busily for a tenth of a second, and a process of one thread may be forked.
    """
    if os.environ.keys().isdisjoint(("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"


@cache
def skip_last_garbage_collection() -> None:
    """Spare this process the search for cycles at its end, a twentieth of a second: nothing waits for what they hold.

    Not for a process that runs code of a user to its end, whose cycles may hold what is yet to be written.
    """
    atexit.register(gc.freeze)
