"""What the records of a dump's journal mean: the envelope, call sites, and entries whole or in parts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import orjson

from msprobe_ms.dump.writing.journal import Record, read_journal
from msprobe_ms.support.errors import DumpFormatError

ENVELOPE = b"D"
CALL_SITE = b"S"
ENTRY = b"E"


class Envelope(NamedTuple):
    """What holds for the whole dump. Without ``extra_info`` it has no call sites and no parents."""

    task: str
    level: str
    framework: str
    dump_data_dir: str | None
    extra_info: bool = True


class EntryPart(NamedTuple):
    """Where an entry's fields stand in the journal; an entry may come in several parts, later fields win."""

    fields: dict[str, tuple[int, int]]
    parent: str | None
    call_site: int | None


def envelope(content: Envelope) -> bytes:
    return json.dumps(list(content)).encode()


def call_site(number: int, frames: Sequence[str]) -> bytes:
    return json.dumps([number, list(frames)]).encode("utf-8", "surrogatepass")


def entry(
    name: str, fields: Iterable[tuple[str, str]], parent: str | None, site: int | None, *, stays: bool = False
) -> bytes:
    """``fields`` are ``(name, text)`` pairs, the text as it will stand in dump.json (see ``text.field_text``).

    A part that ``stays`` does not move its entry.
    """
    texts = [(field, text.encode("utf-8", "surrogatepass")) for field, text in fields]
    head = _dumped([name, parent, site, [(field, len(text)) for field, text in texts], stays])
    return b"".join([head, b"\n", *[text for _, text in texts]])


def _dumped(value: list[Any]) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # half characters, which only the slower one knows
        return json.dumps(value).encode()


def _loaded(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)


class Contents:
    """An index of a journal: what export needs, without the entries' text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.envelope: Envelope | None = None
        self.call_sites: dict[int, list[str]] = {}
        #: Entry name → its fields' places; in order of each entry's *last* part, which is when its call was complete,
        #: but for parts that stay.
        self.entries: dict[str, EntryPart] = {}
        for record in read_journal(path):
            try:
                self._add(record)
            except (ValueError, TypeError, RecursionError) as error:
                place = f"the record at byte {record.offset}"
                raise DumpFormatError(
                    f"{path}: {place} is not one of a dump ({error}); nothing can be exported"
                ) from error

    def _add(self, record: Record) -> None:
        if record.kind == ENTRY:
            self._add_entry(record.payload, record.offset)
        elif record.kind == CALL_SITE:
            number, frames = json.loads(record.payload)
            if type(number) is not int or type(frames) is not list:
                raise ValueError("a call site is a number and a list of frames")
            self.call_sites[number] = frames
        elif record.kind == ENVELOPE:
            self.envelope = Envelope(*json.loads(record.payload))

    def _add_entry(self, payload: bytes, offset: int) -> None:
        head, _, _ = payload.partition(b"\n")
        name, parent, site, lengths, stays = _loaded(head)
        if (
            type(name) is not str
            or not (parent is None or type(parent) is str)
            or not (site is None or type(site) is int)
        ):
            raise ValueError("the name of an entry or of its parent is no text, or its call site no number")
        earlier = self.entries.get(name) if stays else self.entries.pop(name, None)
        fields = {} if earlier is None else earlier.fields
        position = offset + len(head) + 1
        for field, length in lengths:
            if type(field) is not str or type(length) is not int or length < 0:
                raise ValueError(f"a field of {name} has no name or no length")
            fields[intern(field)] = (position, length)
            position += length
        if position != offset + len(payload):
            raise ValueError(f"the fields of {name} end at byte {position}")
        if earlier is not None:
            parent, site = earlier.parent or parent, site if earlier.call_site is None else earlier.call_site
        self.entries[name] = EntryPart(fields, parent and intern(parent), site)
        if stays and earlier is not None:
            return
        # A module's own gradients may be complete before those of a call in it; it stands after the call all the same.
        moved = {name}
        while parent is not None and parent not in moved and (enclosing := self.entries.pop(parent, None)) is not None:
            self.entries[parent] = enclosing
            moved.add(parent)
            parent = enclosing.parent
