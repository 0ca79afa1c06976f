"""``load``: one recorded step, opened; name of an entry → the call."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import counted_entries
from msprobe_ms.dump.opened.calls import RecordedCall
from msprobe_ms.dump.opened.notebook import recording_html
from msprobe_ms.dump.reading.locate import Place, find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.page.template import escaped
from msprobe_ms.support.errors import UsageError, told_briefly
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_count, tr_join, translated

#: Entries a step's text names; the rest is counted.
_MOST_SHOWN = 8
#: Entries that are proposed in place of one that is not there.
_MOST_PROPOSED = 3


class RecordedStep(Mapping[str, RecordedCall]):
    """One recorded step of one process: name of an entry → the call."""

    def __init__(self, folder: Path | None, dump: Dump | None) -> None:
        self._folder, self._dump = folder, dump

    @property
    def path(self) -> Path:
        """The folder of dump.json, stack.json, construct.json and the tensors. Raises UsageError: there is none yet."""
        if self._folder is None:
            raise UsageError(tr("record: nothing is recorded before the block begins: with record(model) as dump: …"))
        return self._folder

    def _read(self) -> Dump | None:
        """The dump; None where nothing was recorded."""
        return self._dump

    def _entries(self) -> dict[str, Entry]:
        dump = self._read()
        return {} if dump is None else dump.entries

    def __getitem__(self, name: str) -> RecordedCall:
        dump = self._read()
        if dump is None or name not in dump.entries:
            hint = _value_in(name, self) or _near(name, self._entries())
            raise KeyError(translated(tr("{name} was not recorded{hint}", name=repr(name), hint=hint)))
        return RecordedCall(dump.entries[name], dump.tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())

    def _repr_html_(self) -> str:
        dump = self._read()
        return f"<pre>{escaped(repr(self))}</pre>" if dump is None else recording_html(dump)

    def __repr__(self) -> str:
        names = list(self)
        held = tr("{entries} in {path}", entries=counted_entries(len(names)), path=self.path)
        lines = [held, *(f"  {name}" for name in names[:_MOST_SHOWN])]
        if len(names) > _MOST_SHOWN:
            lines.append(tr("  … and {count} more", count=len(names) - _MOST_SHOWN))
        return "\n".join(map(translated, lines))


@told_briefly
def load(path: str | os.PathLike[str], *, step: int | None = None, rank: int | None = None) -> RecordedStep:
    """Open a dump and look at its calls::

        dump = load("./dump/step0")
        dump["Cell.fc1.Dense.forward.0"]["output.0"].numpy()

    ``path`` is a dump.json, a rank or step folder, or a dump root, of this tool or of msprobe. Where it holds the dumps
    of several steps or ranks, ``step`` and ``rank`` choose one. No framework is needed; a tensor is read from its file
    when it is asked for. Raises UsageError where not one dump is chosen, DumpFormatError where it cannot be read.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise UsageError(tr("load: {name} is not accepted; give the path of a dump", name=type(path).__name__))
    places = find_places(Path(path))
    chosen = [file for place, file in places.items() if _is_chosen(place, step, rank)]
    if len(chosen) != 1:
        asked = tr_join(tr(" and "), (f"{name} {n}" for name, n in (("step", step), ("rank", rank)) if n is not None))
        held = tr_count("{count} dump: {places}", "{count} dumps: {places}", len(places), places=listed(places, most=8))
        found = tr(", {count} of them of {asked}", count=len(chosen), asked=asked) if asked else ""
        raise UsageError(
            tr(
                "load: {path} holds {held}{found}; choose one with {choice}, or name its folder",
                path=path,
                held=held,
                found=found,
                choice=_choice(places),
            )
        )
    dump = read_dump(chosen[0])
    return RecordedStep(dump.path.parent, dump)


def _choice(places: Collection[Place]) -> str:
    """Say which arguments tell dumps apart; single processes have no rank."""
    steps = {place.step for place in places if place.step is not None}
    ranks = {place.rank_number for place in places if place.rank_number is not None}
    arguments = [f"{name}=" for name, values in (("step", steps), ("rank", ranks)) if len(values) > 1]
    return tr_join(tr(" and "), arguments or ["step=", "rank="])


def _is_chosen(place: Place, step: int | None, rank: int | None) -> bool:
    return (step is None or place.step == step) and (rank is None or place.rank_number == rank)


def _value_in(name: object, step: RecordedStep) -> str:
    """Say how to ask for a value by the name that tables give it: that of the call with that of the value."""
    parts = name.split(".") if isinstance(name, str) else []
    for place in range(len(parts) - 1, 0, -1):
        call, value = ".".join(parts[:place]), ".".join(parts[place:])
        if call in step:
            if value in step[call]:
                return tr('; it is a value of that call: dump["{call}"]["{value}"]', call=call, value=value)
            return tr("; the call {call} has {values}", call=call, values=listed(step[call], most=8))
    return ""


def _near(name: object, entries: Collection[str]) -> str:
    close = _close_to(name, entries)
    return tr("; did you mean {names}?", names=tr_join(tr(" or "), close)) if close else ""


def _close_to(name: object, entries: Collection[str]) -> list[str]:
    """The first entries that a name may mean: part of theirs, near one of their parts, or near the whole."""
    if not isinstance(name, str):
        return []
    found = [entry for entry in entries if name and name.lower() in entry.lower()]
    if not found:
        near = difflib.get_close_matches(name, {part for entry in entries for part in entry.split(".")}, 1)
        found = [entry for entry in entries if near and near[0] in entry.split(".")]
    return found[:_MOST_PROPOSED] or difflib.get_close_matches(name, entries, _MOST_PROPOSED)
