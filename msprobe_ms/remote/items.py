"""The calls of one recorded step as they are sent: the entries of each, and the bytes of their tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msprobe_ms.arrays.stored import StoredTensor, load_stored
from msprobe_ms.dump.dialects import API_PREFIXES, COLLECTIVE_PREFIXES, JIT, KERNEL
from msprobe_ms.dump.model import Item
from msprobe_ms.dump.names import BACKWARD, FORWARD, parse_entry
from msprobe_ms.dump.reading.items import TensorSource
from msprobe_ms.dump.reading.json_stream import members
from msprobe_ms.dump.writing.export import export
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.remote.frames import head, with_tensors
from msprobe_ms.remote.messages import Call, Dropped, MessageError, Tensor, text_of
from msprobe_ms.remote.spool import DROPPED, DUMP, NO_ROOM, Sample
from msprobe_ms.support.errors import DumpFormatError, MsprobeError
from msprobe_ms.support.translation import tr

#: Why what could not be put into messages is not sent.
_TOO_LARGE = tr("its record is beyond what is sent")


class OutgoingStep:
    """A recorded step: names of its calls in order, and for each the frame that is sent."""

    def __init__(self, sample: Sample) -> None:
        """Read the dump; what cannot be read is one thing that is dropped, with the reason."""
        self._sample = sample
        self._framework = ""
        self._calls: dict[str, dict[str, Any]] = {}
        self._dropped = ""
        try:
            self._read()
        except (MsprobeError, OSError, RecursionError) as error:
            self._calls, self._dropped = {}, tr("the record of the step cannot be read: {error}", error=error)
        self._tensors = TensorSource(sample.folder)
        self._no_room = (sample.folder / NO_ROOM).exists()

    def _read(self) -> None:
        folder = self._sample.folder
        if (folder / DROPPED).exists():
            self._dropped = (folder / DROPPED).read_text(encoding="utf-8")
            return
        if not self._sample.whole and (folder / JOURNAL_NAME).exists():
            export(folder, recovered=True)
        if not (folder / DUMP).exists():
            return
        for holder, entry, value in members(folder / DUMP, opened="data"):
            if holder and isinstance(value, dict):
                self._calls.setdefault(_call_of(entry), {})[entry] = value
            elif entry == "framework":
                self._framework = str(value)

    @property
    def count(self) -> int:
        """How many numbers it takes."""
        return 1 if self._dropped else len(self._calls)

    def frames(self, first: int, start: int) -> Iterator[tuple[int, Callable[[], Iterator[bytes | memoryview]]]]:
        """Yield the numbers from ``start`` on, of which ``first`` is the step's first, and what gives the frame."""
        if self._dropped:
            if start <= first:
                yield first, lambda: _dropped(first, self._sample.step, self._dropped)
            return
        for number, (name, entries) in enumerate(self._calls.items(), first):
            if number >= start:
                yield number, lambda number=number, name=name, entries=entries: self._frame(number, name, entries)  # type: ignore[misc]

    def _frame(self, number: int, key: str, entries: Mapping[str, Any]) -> Iterator[bytes | memoryview]:
        name = f"{self._sample.step}.{key}"
        found = _Tensors(self._tensors if any(map(_is_judged, entries)) else None)
        try:
            sent = {entry: found.replaced(value) for entry, value in entries.items()}
            if self._no_room and found.missing:
                return _dropped(number, name, tr("there was no room for its tensors beside the training"))
            tensors = [Tensor(dtype=each.dtype, shape=list(each.codes.shape)) for each in found.tensors]
            call = Call(number=number, name=name, framework=self._framework, entries=sent, tensors=tensors)
            text = text_of(call)
            head(text)
        except (ValueError, MessageError, RecursionError):  # a ValidationError is a ValueError
            return _dropped(number, name, _TOO_LARGE)
        return with_tensors(text, (each.content for each in found.tensors))


def _dropped(number: int, name: str, reason: str) -> Iterator[bytes | memoryview]:
    yield head(text_of(Dropped(number=number, name=name[:20_000], reason=reason[:2000])))


def _call_of(entry: str) -> str:
    """The call that an entry is forward or backward of; any other entry stands alone."""
    parsed = parse_entry(entry)
    both = parsed is not None and parsed.direction in (FORWARD, BACKWARD)
    return entry.rpartition(".")[0] if both else entry


def _is_judged(entry: str) -> bool:
    """Whether the values of an entry may be judged: it is one of an API that is no collective."""
    parsed = parse_entry(entry)
    if parsed is None or parsed.is_module or parsed.prefix in (JIT, KERNEL, *COLLECTIVE_PREFIXES):
        return False
    return parsed.prefix in API_PREFIXES


class _Tensors:
    """The tensors of one call, in the order in which its entries name them."""

    def __init__(self, source: TensorSource | None) -> None:
        """Without a source no tensor is sent."""
        self._source = source
        self._places: dict[str, str] = {}
        self.tensors: list[StoredTensor] = []
        #: Tensors that have no file.
        self.missing = 0

    def replaced(self, value: Any) -> Any:
        """Give a value of an entry with the places of tensors where it names their files."""
        if isinstance(value, dict):
            if isinstance(value.get("type"), str) and "shape" in value and "dtype" in value:
                return {**value, "data_name": self._place(value)}
            return {key: self.replaced(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self.replaced(member) for member in value]
        return value

    def _place(self, leaf: Mapping[str, Any]) -> str | None:
        name = leaf.get("data_name")
        if self._source is None:
            return None
        if not isinstance(name, str):
            self.missing += 1
            return None
        if name not in self._places:
            try:
                loaded = load_stored(self._source.path(Item("", "input", (), data_name=name)), str(leaf["dtype"]))
            except DumpFormatError:
                self.missing += 1
                return None
            self._places[name] = str(len(self.tensors))
            self.tensors.append(loaded)
        return self._places[name]
