"""One step's dump of one process, being written: its folder, its journal, its tensor files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from errno import EEXIST, ENOENT, ENOTEMPTY
from functools import partial
from pathlib import Path

from msprobe_ms.dump.names import BESIDE, EARLIER
from msprobe_ms.dump.writing.contents import (
    CALL_SITE,
    ENTRY,
    ENVELOPE,
    Contents,
    Envelope,
    encode_call_site,
    encode_entry,
    encode_envelope,
)
from msprobe_ms.dump.writing.export import Progress, export_into
from msprobe_ms.dump.writing.journal import JOURNAL_NAME, JournalWriter, is_being_written
from msprobe_ms.dump.writing.json_text import Value, Whole, field_text
from msprobe_ms.dump.writing.memory_budget import Copy, MemoryBudget, OutOfMemory, Write
from msprobe_ms.dump.writing.tensor_files import TensorFiles
from msprobe_ms.support.files import DEFAULT, Permissions
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.interruptions import suppress_own
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

_entry: Callable[..., tuple[bytes, tuple[str | int, ...], int] | None] | None
try:
    from msprobe_ms.dump.writing._records import entry as _entry
except ImportError:  # it was installed without a compiler
    _entry = None

#: Bytes that the index of a journal takes for an entry (with what `MemoryBudget` adds for anything), and for a frame,
#: as measured with some room.
_ENTRY, _FRAME = 256, 256

#: Entries that are noted before they are added to the index: one after the other, that takes a fraction of the time.
_MOST_NOTED = 1 << 12

#: How often a folder is tried anew that other processes use, make and remove meanwhile.
_TRIES = 20

TENSOR_FOLDER = "dump_tensor_data"
ERROR_LOG = "dump_error_info.log"
#: The files of a dump beside its tensors.
_FILES = ("dump.json", "debug.json", "stack.json", "construct.json", ERROR_LOG, JOURNAL_NAME)


def process_folder(dump_path: Path, step: int, rank: int | None) -> Path:
    """``{dump_path}/step{N}/rank{R}``, or ``proc{pid}`` for a process that has no rank."""
    return dump_path / f"step{step}" / (f"proc{os.getpid()}" if rank is None else f"rank{rank}")


@dataclass(slots=True)
class EntryPart:
    """An entry of a dump, or one of several parts of it, of which later fields win.

    ``name``       ``Cell.fc1.Dense.forward.0``
    ``fields``     pairs of name and value
    ``parent``     the entry of the enclosing module, if any
    ``call_site``  the number that `DumpStore.call_site` was given for it, if any
    ``complete``   False for a part after which another is expected
    ``stays``      the entry keeps its place; else it is that of its last part
    """

    name: str
    fields: Sequence[tuple[str, Value | Whole]]
    parent: str | None = None
    call_site: int | None = None
    complete: bool = True
    stays: bool = False
    _record: bytes = field(default=b"", init=False, repr=False)
    _lengths: Sequence[str | int] = field(default=(), init=False, repr=False)
    _head: int = field(default=0, init=False, repr=False)

    def encode(self) -> bytes:
        """Encode the part as a record of a journal, once: a second call gives the same bytes."""
        if not self._record:
            made = _entry and _entry(self.name, self.parent, self.call_site, self.stays, self.fields)
            self._record, self._lengths, self._head = made or self._encoded()
        return self._record

    def _encoded(self) -> tuple[bytes, Sequence[str | int], int]:
        """The record, names and lengths of the fields' texts in it by turns, and where the first of them begins."""
        texts = [(name, field_text(name, value)) for name, value in self.fields]
        record = encode_entry(self.name, texts, self.parent, self.call_site, stays=self.stays)
        lengths = tuple(each for name, text in texts for each in (name, len(text)))
        return record, lengths, len(record) - sum(len(text) for _, text in texts)

    def note(self, contents: Contents, offset: int) -> None:
        """Note the part in an index, once its record is at ``offset`` of a journal."""
        noted = contents.noted
        noted.append((self.name, self.parent, self.call_site, offset + self._head, self.stays, *self._lengths))
        if len(noted) >= _MOST_NOTED:
            contents.add_noted()


class DumpStore:
    """Takes records as calls end and turns them into files (docs/format.md, "Folders and files").

    It owns its folder as long as the journal is open: no other process moves the dump aside or writes into it. Every
    accepted record is on disk when the method returns. ``export`` may be called any number of times; ``close`` exports
    what is new and removes the journal.
    """

    #: Whether nothing new will be recorded.
    full = False

    def __init__(
        self,
        folder: Path,
        *,
        task: str,
        level: str,
        framework: str,
        tensors: bool,
        extra_info: bool = True,
        permissions: Permissions = DEFAULT,
        memory: MemoryBudget | None = None,
    ) -> None:
        """Create ``folder``; a dump that already lies there is moved aside, never mixed with or lost.

        Where another process is writing one there, the dump goes beside it (`vacate`). ``memory`` counts what the index
        of the journal takes when it is exported; None for no limit.

        Raises OSError when the folder cannot be made or written.
        """
        self.entries = 0
        self._memory = memory or MemoryBudget(1 << 40)
        self._index_is_full = False
        #: Kept as records are written, so that the journal need not be read for it.
        self._contents = Contents()
        #: Entries of which another part is expected.
        self._begun: set[str] = set()
        #: Entries in dump.json as it is; `entries` counts their parts.
        self.exported_entries = 0
        #: In words, what is missing although it should have been recorded; "" while nothing is.
        self.incomplete = ""
        self._exported: tuple[int, str] | None = None
        self.discarded = False
        place = vacate(folder)
        for left in reversed(range(_TRIES)):
            _make(place, permissions)
            data_dir = str((place / TENSOR_FOLDER).resolve()) if tensors else None
            self._contents.envelope = Envelope(task, level, framework, data_dir, extra_info)
            envelope = encode_envelope(self._contents.envelope)
            try:
                #: Whatever is written goes through it.
                self.files = Folder(place, permissions)
                self._journal = JournalWriter(self.files, ENVELOPE, envelope)
                break
            except (FileExistsError, FileNotFoundError):  # another process was faster
                if not left:
                    raise
                place = vacate(folder)
        self._tensors = TensorFiles(self.files)
        if tensors:
            try:
                self.files.make_folder(TENSOR_FOLDER)
            except OSError:
                self.files.unlink(JOURNAL_NAME)
                raise

    @property
    def folder(self) -> Path:
        """Where the dump is."""
        return self.files.path

    def call_site(self, number: int, frames: Sequence[str]) -> None:
        """Record a call site. Raises OSError when the disk refuses, OutOfMemory when the index is full."""
        if not self._memory.stay(sum(map(len, frames)) + _FRAME * len(frames)):
            raise self._no_room()
        sites = self._contents.call_sites
        self._journal.append(CALL_SITE, encode_call_site(number, frames), lambda _: sites.update({number: frames}))

    def entry(self, part: EntryPart) -> None:
        """Record an entry, or a further part of one. Raises OSError when the disk refuses, OutOfMemory when the index
        is full."""
        record, name = part._record or part.encode(), part.name
        if name not in self._begun:
            # For none any more, once it was so for one: another's name may be a byte shorter.
            self._index_is_full = self._index_is_full or not self._memory.stay(_ENTRY + len(name))
            if self._index_is_full:
                raise self._no_room()
        self._journal.append(ENTRY, record, partial(part.note, self._contents))
        self.entries += 1
        if part.complete:
            self._begun.discard(name)
        else:
            self._begun.add(name)

    def forget(self, name: str) -> None:
        """The call of an entry raised; there is nothing of it here."""

    def _no_room(self) -> OutOfMemory:
        return OutOfMemory(f"{self._memory} holds no more entries of one step")

    def tensor(self, data_name: str, write: Write, entry: str = "", copy: Copy | None = None) -> bool:
        """Write one tensor file of ``entry`` through ``write``; it is whole or absent.

        False where the entry would be refused.
        """
        if self.refuses(entry):
            return False
        self.write(data_name, write)
        return True

    def refuses(self, entry: str) -> bool:
        """Whether there is no room for the entry any more: the index is full, and no part of it is there."""
        return self._index_is_full and entry not in self._begun

    def write(self, data_name: str, write: Write) -> None:
        """Write the file of a tensor whose entry has its place."""
        name = f"{TENSOR_FOLDER}/{data_name}"
        try:
            self._tensors.write(name, write)
        except (FileNotFoundError, NotADirectoryError):  # someone has removed the folder, or put something in its place
            self.files.make_folder(TENSOR_FOLDER)
            self._tensors.write(name, write)

    def mark_incomplete(self, text: str) -> None:
        """Have dump.json say that something is missing, and in words what."""
        self.incomplete = text

    def export(self, progress: Progress | None = None) -> None:
        """Bring dump.json, stack.json and construct.json up to date, if anything was recorded since the last time."""
        state = self.entries, self.incomplete
        if self._exported != state:
            if not self._journal.is_in_place():
                raise FileNotFoundError(
                    ENOENT, tr("the dump was moved or removed while it was written"), str(self.folder)
                )
            written = self._journal.length
            kept = self._journal.if_noted(self._contents.kept)
            exported = export_into(self.files, progress=progress, incomplete=self.incomplete, kept=kept)
            if exported.journal < written and not self.incomplete:
                self._warn_of_damage(exported.journal, written)
                state = self.entries, self.incomplete
                exported = export_into(self.files, progress=progress, incomplete=self.incomplete)
            self.exported_entries, self._exported = exported.entries, state
            self._journal.note_export(exported.journal, exported.dump)

    def _warn_of_damage(self, read: int, written: int) -> None:
        self.mark_incomplete(f"its journal was damaged while it was written, at byte {read} of {written}")
        logger.warning(
            tr(
                "{folder}: the journal was damaged while it was written, by another process or by the disk: at byte "
                "{read} of {written}; what was recorded after that is not in the dump",
                folder=self.folder,
                read=read,
                written=written,
            )
        )

    def move(self, folder: Path) -> None:
        """Have the dump in another folder of the same disk; what lies there already is moved aside. Raises OSError."""
        folder = vacate(folder)
        _make(folder.parent, self.files.permissions)
        self.files.rename(folder)
        self._exported = None

    def discard(self) -> None:
        """Remove the dump, which has no entries. Raises OSError."""
        self.discarded = True
        try:
            self._journal.close()
        finally:
            self.files.remove(_FILES, TENSOR_FOLDER)

    def close(self, progress: Progress | None = None) -> None:
        """Export and remove the journal: from here on the JSON files are the dump.

        Raises OSError when the disk refuses; the journal then stays, for readers a sign that the dump is not whole.
        Interrupted, it may be called again.
        """
        try:
            self.export(progress)
            if self._journal.is_in_place():
                self.files.unlink(JOURNAL_NAME)
        except Exception:
            try:
                if self._exported != (self.entries, self.incomplete):
                    with suppress_own(OSError):
                        self._journal.leave_unfinished()
            finally:
                self._journal.close()
            raise
        self._journal.close()


def _make(folder: Path, permissions: Permissions) -> None:
    """Make a folder, and again: other ranks remove those above it that they leave empty. Raises OSError."""
    for _ in range(_TRIES):
        try:
            return permissions.make_folder(folder)
        except FileNotFoundError:
            continue
    return permissions.make_folder(folder)


def vacate(folder: Path) -> Path:
    """Return where a process may write its dump: ``folder``, from which an earlier dump is moved aside and it is said.

    Where another process is writing one there, that stays; this one's place is ``beside{n}_{name}``. Raises OSError.
    """
    place, number = folder, 0
    while not _is_vacant(place):
        number += 1
        place = folder.with_name(f"{BESIDE}{number}_{folder.name}")
    return place


def warn_of_owner(folder: Path, place: Path, warned_before: set[str]) -> None:
    """Warn, once, that the dump meant for ``folder`` goes to ``place``, as another process writes there."""
    if place.name != folder.name and BESIDE not in warned_before:
        warned_before.add(BESIDE)
        logger.warning(
            tr(
                "{folder}: another process is writing its dump there; that of this one goes to {place}, and "
                "likewise in later steps; give each process of a job its own rank, start(model, rank_id=…), "
                "and each job its own dump_path",
                folder=folder,
                place=place,
            ),
        )


def _is_vacant(folder: Path) -> bool:
    """Move aside the dump that lies in ``folder``, if one does; False where it is being written."""
    if not any(os.path.lexists(folder / name) for name in ("dump.json", "debug.json", JOURNAL_NAME, TENSOR_FOLDER)):
        return True
    try:
        found = Folder(folder)
        if is_being_written(folder / JOURNAL_NAME):
            return False
        aside = _renamed(folder)
    except FileNotFoundError:  # another process was faster
        return True
    if not found.is_at(aside):  # it was, and has begun a dump of its own there
        with suppress_own(OSError):  # which goes on where it is, if it cannot be put back
            aside.rename(folder)
        return False
    logger.warning(tr("{folder} already held a dump; it is now {aside}", folder=folder, aside=aside))
    return True


def _renamed(folder: Path) -> Path:
    """The first ``earlier{n}_{name}`` that is free, which is the name of ``folder`` from here on. Raises OSError."""
    number = 0
    while True:
        number += 1
        aside = folder.with_name(f"{EARLIER}{number}_{folder.name}")
        if not aside.exists():
            try:
                return folder.rename(aside)
            except OSError as error:
                if error.errno not in (EEXIST, ENOTEMPTY):  # another process was faster
                    raise
