"""Files that operators in compiled graphs wrote → what an observer of the calls in them is told.

The numbers in files' names are taken for the order of the program in forward, as operators with side effects keep it:
calls begin, are given and give, and end in that order, whatever they are nested in. Gradients come when they are
there, which may be before that. They do not say which of several calls they are of: calls that were given the same
layout take theirs in reverse, the last call the first gradient. Where some calls take none, those are taken to be the
earliest, as nothing before them is trained; where that need not be so it is told.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from msprobe_ms.arrays.npy import load_array
from msprobe_ms.frameworks.graph_observer import GraphObserver, Tapped
from msprobe_ms.frameworks.mindspore.tensor_dump_names import Compiled, FileName, Kind, Written, read_name
from msprobe_ms.support.translation import tr

#: Seconds without any news after which all files are taken to be there; those where calls have begun that did not
#: end; and those after which no more are waited for, although files still come.
QUIET, PATIENCE, LATEST = 0.5, 5.0, 60.0


def wait_for_files(
    folder: Path, *, quiet: float = QUIET, patience: float = PATIENCE, latest: float = LATEST
) -> list[Path]:
    """The files of ``folder`` once no more of them come and none grows: the times are seconds."""
    began = changed = time.monotonic()
    before: dict[Path, int] = {}
    while True:
        sizes = _sizes(folder)
        now = time.monotonic()
        if sizes != before:
            before, changed = sizes, now
        needed = quiet if _balanced(sizes) else patience
        if now - changed >= needed or now - began >= latest:
            return sorted(sizes)
        time.sleep(min(0.02, quiet / 4))


def _sizes(folder: Path) -> dict[Path, int]:
    sizes = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        try:
            sizes[path] = path.stat().st_size
        except FileNotFoundError:
            continue
    return sizes


def _balanced(paths: dict[Path, int]) -> bool:
    kinds = [written.name.kind for path in paths if (written := read_name(path)) is not None]
    return kinds.count(Kind.BEGIN) == kinds.count(Kind.END)


#: What comes in no order with the rest.
_BACKWARD = (Kind.GRADIENT, Kind.PARAMETER_GRADIENT)

#: What is written when a call has called whatever it calls.
_LAST = ("output", "parameters")


class _Call:
    """One call: its number at the observer, and what of it has been told."""

    def __init__(self, call: int, number: int) -> None:
        self.call = call
        self.number = number
        self.ended = False
        self.values: set[int] = set()
        self.gradients: set[int] = set()


class FileEvents:
    """Tells what the files of one step say. A file that is lost costs what it held, and is named."""

    def __init__(self, compiled: Compiled, tapped: Tapped) -> None:
        self._compiled = compiled
        self._tapped = tapped
        #: What entries of the modules start with, by number.
        self.bases: Sequence[str] = ()
        self._open: list[_Call] = []
        #: All calls of the step, by what they were given.
        self._calls: dict[int, list[_Call]] = {}

    def tell(self, paths: Sequence[Path], observer: GraphObserver) -> None:
        """Tell of these files in the order in which they were written, and remove them."""
        known: list[Written] = []
        for path in paths:
            written = read_name(path)
            if written is None or not self._is_known(written.name):
                observer.failed(
                    ValueError(tr("no name that was compiled into a graph: {name}", name=path.name)), "files of a graph"
                )
                _remove(path, observer)
            else:
                known.append(written)
        for written in sorted(known, key=lambda each: (each.name.kind in _BACKWARD, each.identity)):
            try:
                self._tell(written, observer)
            except Exception as error:
                observer.failed(error, self._where(written.name))
            _remove(written.path, observer)
        self._end_open(0, observer)

    def _end_open(self, depth: int, observer: GraphObserver) -> None:
        """End calls whose end is not told until ``depth`` are open."""
        while len(self._open) > depth:
            self._lost(observer, self._base_of(self._open[-1]), tr("the end of a call"))
            self._end(self._open[-1], None, observer)

    @property
    def lacks_gradients(self) -> bool:
        """Whether calls have had no gradient so far."""
        return self._tapped.gradients and any(not each.gradients for calls in self._calls.values() for each in calls)

    def close(self, observer: GraphObserver) -> None:
        """The step is over: say where only the order of calls, not the graph, says whose gradients are whose."""
        for calls in self._calls.values():
            for number in sorted(set[int]().union(*(each.gradients for each in calls))):
                have = sum(number in each.gradients for each in calls)
                if have < len(calls):
                    given, place = self._compiled.given[calls[0].call], self._compiled.places[number]
                    text = ".".join((place.field, *place.path))
                    what = tr(
                        "which of {count} calls took the {have} gradients of {text}; they are with the latest",
                        count=len(calls),
                        have=have,
                        text=text,
                    )
                    observer.untold(given.module, what)

    def _is_known(self, name: FileName) -> bool:
        compiled = self._compiled
        tables = {Kind.END: len(compiled.outputs), Kind.PARAMETER_GRADIENT: len(compiled.parameters), Kind.BEGIN: 1}
        return (
            name.module < len(self.bases)
            and name.number < tables.get(name.kind, len(compiled.places))
            and (name.kind is Kind.PARAMETER_GRADIENT or name.call < len(compiled.given))
        )

    def _tell(self, written: Written, observer: GraphObserver) -> None:
        name = written.name
        if name.kind is Kind.BEGIN:
            self._end_past(name.module, observer)
            self._begin(name.call, observer)
        elif name.kind is Kind.VALUE:
            self._value(written, observer)
        elif name.kind is Kind.GRADIENT:
            self._gradient(written, observer)
        elif name.kind is Kind.END:
            self._end_of(name, observer)
        else:
            parameter = self._compiled.parameters[name.number]
            observer.parameter_gradient(parameter.module, parameter.name, parameter.dtype, _read(written.path))

    # -- calls -----------------------------------------------------------------------------------------------------

    def _begin(self, call: int, observer: GraphObserver) -> _Call:
        given = self._compiled.given[call]
        begun = _Call(call, observer.begins(given.module, given.args, given.kwargs))
        self._open.append(begun)
        self._calls.setdefault(call, []).append(begun)
        return begun

    def _end_past(self, module: int, observer: GraphObserver) -> None:
        """End calls in which none of ``module`` can begin any more: one of itself, and what has given its result."""
        for depth, call in enumerate(self._open):
            places = (self._compiled.places[number] for number in call.values)
            if self._compiled.given[call.call].module == module or any(each.field in _LAST for each in places):
                self._end_open(depth, observer)
                return

    def _running(self, name: FileName, observer: GraphObserver) -> _Call:
        """The call that a file is of. Those inside it have ended, and it has begun, though that may not be told."""
        if not any(each.call == name.call for each in self._open):
            self._lost(observer, self.bases[name.module], tr("the beginning of a call"))
            return self._begin(name.call, observer)
        depth = max(index for index, each in enumerate(self._open) if each.call == name.call) + 1
        self._end_open(depth, observer)
        return self._open[-1]

    def _is_late(self, name: FileName) -> bool:
        """Whether a file is of a call that was given up waiting for."""
        if any(each.call == name.call for each in self._open):
            return False
        ended = self._calls.get(name.call, [])
        return any(name.number not in each.values for each in ended)

    def _end_of(self, name: FileName, observer: GraphObserver) -> None:
        calls = self._calls.get(name.call, [])
        if not any(each.call == name.call for each in self._open) and any(not each.ended for each in calls):
            next(each for each in calls if not each.ended).ended = True  # it came too late
            return
        call = self._running(name, observer)
        call.ended = True
        self._end(call, name.number, observer)

    def _end(self, call: _Call, output: int | None, observer: GraphObserver) -> None:
        """End the innermost call; where the file that says so is lost, with the result that is known of such calls."""
        self._open.remove(call)
        output = self._compiled.latest_output.get(call.call) if output is None else output
        if output is None:
            return
        if self._tapped.values or self._tapped.parameters:
            self._tell_missing(call, output, observer)
        if call.number >= 0:
            observer.ends(call.number, self._compiled.outputs[output])

    def _tell_missing(self, call: _Call, output: int, observer: GraphObserver) -> None:
        places = (self._compiled.places[number] for number in call.values)
        told = {(place.field, place.path) for place in places}
        for field, path in self._compiled.expected(call.call, output):
            wanted = self._tapped.parameters if field == "parameters" else self._tapped.values
            if wanted and (field, path) not in told:
                self._lost(observer, self._base_of(call), ".".join((field, *path)))

    # -- tensors ---------------------------------------------------------------------------------------------------

    def _value(self, written: Written, observer: GraphObserver) -> None:
        name = written.name
        if self._is_late(name):
            observer.failed(TimeoutError(tr("its file came when its call was over and recorded")), self._where(name))
            return
        call = self._running(name, observer)
        call.values.add(name.number)
        if call.number >= 0:
            observer.value(call.number, self._compiled.places[name.number], _read(written.path))

    def _gradient(self, written: Written, observer: GraphObserver) -> None:
        name = written.name
        calls = self._calls.get(name.call, [])
        call = next((each for each in reversed(calls) if name.number not in each.gradients), None)
        if call is None:
            raise LookupError(tr("there are more gradients than calls"))
        call.gradients.add(name.number)
        if call.number >= 0:
            observer.value(call.number, self._compiled.places[name.number], _read(written.path))

    # -- words -----------------------------------------------------------------------------------------------------

    def _base_of(self, call: _Call) -> str:
        return self.bases[self._compiled.given[call.call].module]

    def _where(self, name: FileName) -> str:
        base = self.bases[name.module]
        if name.kind is Kind.PARAMETER_GRADIENT:
            return tr("{base}: gradient of {name}", base=base, name=self._compiled.parameters[name.number].name)
        if name.kind not in (Kind.VALUE, Kind.GRADIENT):
            return base
        place = self._compiled.places[name.number]
        text = ".".join((place.field, *place.path))
        return tr("{base}: gradient of {text}", base=base, text=text) if place.is_gradient else f"{base}: {text}"

    def _lost(self, observer: GraphObserver, base: str, what: str) -> None:
        observer.failed(
            FileNotFoundError(tr("the file that the graph should have written did not come")), f"{base}: {what}"
        )


def _read(path: Path) -> np.ndarray:
    """The array of a file. Raises what `load_array` does."""
    return load_array(path, None)


def _remove(path: Path, observer: GraphObserver) -> None:
    try:
        path.unlink()
    except OSError as error:
        observer.failed(error, "files of a graph")
