"""What is wrong after a training on a failing disk: nothing, or sentences."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import msprobe_ms
from msprobe_ms.arrays.torch_file import load_tensor
from msprobe_ms.dump.reading.locate import DUMP_FILES
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.export import recover
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.dump.writing.writer import ERROR_LOG, TENSOR_FOLDER
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.log import logger

#: Folder of a dump, below the dump path → its files by their path in it; journal and error log apart.
Contents = dict[str, dict[str, bytes]]

#: Raw kernel files that MindSpore writes itself lie in ``rank_{R}/Net``; a full disk cuts them.
_FRAMEWORKS_OWN = "Net"


class Voice(logging.Handler):
    """Every warning while it is entered, and every error that Python could hand to nobody."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warnings: list[str] = []
        self.unraisable: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.warnings.append(record.getMessage())

    @contextmanager
    def listening(self) -> Iterator[None]:
        handlers, logger.handlers = logger.handlers, [self]
        hooks = sys.unraisablehook, threading.excepthook
        sys.unraisablehook = lambda found: self.unraisable.append(f"{found.object!r}: {found.exc_value!r}")
        threading.excepthook = lambda found: self.unraisable.append(f"{found.thread}: {found.exc_value!r}")
        try:
            yield
        finally:
            logger.handlers = handlers
            sys.unraisablehook, threading.excepthook = hooks


def contents(dump_path: Path) -> Contents:
    """Every dump below ``dump_path``."""
    found: Contents = {}
    for path in sorted(dump_path.rglob("*")):
        if path.name in DUMP_FILES:
            files = (each for each in path.parent.rglob("*") if each.is_file())
            found[str(path.parent.relative_to(dump_path))] = {
                str(each.relative_to(path.parent)): _content(each)
                for each in files
                if each.name not in (JOURNAL_NAME, ERROR_LOG) and not each.name.endswith(".tmp")
            }
    return found


def _content(path: Path) -> bytes:
    """A file's bytes; of call sites only what lies within the training."""
    content = path.read_bytes()
    return (
        b"".join(re.split(rb'( *"File [^"]*/trainings[.]py.*\n)(?: *"File .*\n)*', content))
        if path.name == "stack.json"
        else content
    )


def _of(path: Path, dump_path: Path) -> str:
    """The dump that a file belongs to."""
    folder = path.parent
    return str((folder.parent if folder.name == TENSOR_FOLDER else folder).relative_to(dump_path))


def _in(path: Path, dump_path: Path) -> str:
    return str(path.relative_to(dump_path / _of(path, dump_path)))


def open_files(folder: Path) -> list[str]:
    """Files below ``folder`` that this process holds open."""
    places = []
    for number in os.listdir("/proc/self/fd"):
        try:
            places.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # the one that listed
            continue
    return sorted(place for place in places if place.startswith(f"{folder}/"))


def unreadable(files: list[Path], scratch: Path) -> Iterator[str]:
    """What of ``files`` cannot be read: JSON, tensors, and journals after ``msprobe recover``."""
    for path in files:
        try:
            if path.suffix == ".json":
                json.loads(path.read_bytes())
            elif path.suffix == ".npy":
                np.load(path, allow_pickle=False)
            elif path.suffix == ".pt":
                load_tensor(path)
            elif path.name == JOURNAL_NAME:
                yield from _unrecoverable(path.parent, scratch)
        except (ValueError, OSError, EOFError, MsprobeError) as error:
            yield f"{path} cannot be read: {error}"


def _entries(dump: bytes) -> set[str]:
    return set(json.loads(dump)["data"])


def _copied(folder: Path, scratch: Path) -> Path:
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(folder, scratch)
    return scratch


def _unrecoverable(folder: Path, scratch: Path) -> Iterator[str]:
    copy = _copied(folder, scratch)
    for found in recover(copy):
        if found.problem:
            yield f"{folder}: its journal cannot be recovered: {found.problem}"
    if not read_dump(copy).damage:
        yield f"{folder}: recovered, it does not say that it is incomplete"


class Told:
    """What a dump that lacks something, and the warnings, say of that."""

    def __init__(self, dump_path: Path, expected: Contents, warnings: list[str]) -> None:
        self._dump_path = dump_path
        self._expected = expected
        found = contents(dump_path)
        #: Files that are not what they would be on a disk that works; and such dumps.
        self.other = [
            path
            for path in dump_path.rglob("*")
            if path.is_file()
            and _FRAMEWORKS_OWN not in path.parts
            and expected.get(_of(path, dump_path), {}).get(_in(path, dump_path)) != _content(path)
        ]
        self.lacking = [name for name, files in expected.items() if found.get(name) != files]
        self.strange = [name for name in found if name not in expected]
        self._warnings = warnings
        #: Of those, the dumps that nothing but a warning says it of.
        self.by_warning_alone: list[str] = []

    def silent(self) -> Iterator[str]:
        """Dumps that lack something without a word."""
        for name in self.lacking:
            folder = self._dump_path / name
            log = folder / ERROR_LOG
            logged = log.is_file() and log.stat().st_size > 0
            warned = self._is_told(name)
            if not (logged or warned):
                yield f"{name} is not whole, and neither its error log nor a warning says so"
            if not self.is_marked(folder):
                if warned:
                    self.by_warning_alone.append(name)
                else:
                    yield f"{name} is not whole, and reads as if it were"
        for name in self.strange:
            if not self.is_marked(self._dump_path / name) and not self._is_told(name):
                yield f"{name} should not be there"

    def lost_more_than(self, most: int, scratch: Path) -> Iterator[str]:
        """Dumps with an entry that lack more than ``most`` of those that they should have."""
        for name in self.lacking:
            folder = self._dump_path / name
            if not any((folder / each).exists() for each in (*DUMP_FILES, JOURNAL_NAME)):
                continue
            copy = _copied(folder, scratch)
            if (copy / JOURNAL_NAME).exists():
                list(recover(copy))
            names = {each: _entries((copy / each).read_bytes()) for each in DUMP_FILES if (copy / each).exists()}
            for each, found in names.items():
                missing = _entries(self._expected[name][each]) - found
                if found and len(missing) > most:
                    yield f"{name} lacks {len(missing)} entries: {sorted(missing)[:4]}"

    def _is_told(self, name: str) -> bool:
        """Whether a warning speaks of the dump's process and step, or of steps that are not recorded."""
        place = "/".join(Path(name).parts[-2:])
        return any(place in text or "steps are not recorded" in text for text in self._warnings)

    def is_marked(self, folder: Path) -> bool:
        """Whether a reader is told that the dump is not whole, or that there is none."""
        try:
            return bool(read_dump(folder).damage)
        except MsprobeError:
            return True


def says_whole(folder: Path, golden: Path) -> bool:
    """Whether compare finds a dump consistent with its golden."""
    try:
        return msprobe_ms.compare(folder, golden).verdict == "consistent"
    except MsprobeError:  # there is nothing to compare
        return False


def flood(warnings: list[str], usual: list[str], steps: int) -> Iterator[str]:
    """More than one warning for one error of the system, and one for each step that lost something."""
    texts = [text for text in warnings if text not in usual]
    recording = [text for text in texts if "could not be recorded" in text]
    refused = [text for text in texts if "not recorded, training goes on" in text]
    counted = [text for text in texts if "steps are not recorded" in text]
    summaries = [text for text in texts if "dump_error_info.log" in text and text not in recording]
    #: Kernels of compiled graphs have no error log: a warning for the index, and one for what becomes of raw files.
    kernels = [text for text in texts if re.search("has no index|could not be read|stay", text)]
    rest: list[Any] = [text for text in texts if text not in [*recording, *refused, *counted, *summaries, *kernels]]
    if (
        len(recording) > 1
        or len(refused) > 1
        or len(counted) > 1
        or len(summaries) > steps
        or len(kernels) > 2 * steps
        or rest
    ):
        yield f"{len(texts)} warnings: {texts}"
