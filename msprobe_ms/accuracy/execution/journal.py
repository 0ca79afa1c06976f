"""What was judged so far, a line of JSON each, so that a run which was killed goes on where it was."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.translation import from_plain, to_plain, tr

#: Ending of the name of a journal.
SUFFIX = ".journal"
#: A line of one result is longer only if something else wrote it.
_LONGEST_LINE = 1 << 24


def _version() -> str:
    """The version of this package, whose judging may differ from that of another."""
    try:
        return version("msprobe-ms")
    except PackageNotFoundError:  # it was not installed, only found
        return ""


class Journal:
    """The results of one run, in the order in which they came. Its first line says of which dump and options.

    One process writes it at a time, which a lock holds that ends with the process.
    """

    def __init__(self, path: Path, key: str) -> None:
        """Open or make it. Raises OSError: it cannot be written, or another process writes it."""
        self.path = path
        self.done: dict[str, Mapping[str, Any]] = {}
        self._file: BinaryIO = open(path, "a+b")  # noqa: SIM115 (closed by `close`)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            whole = self._read(key)
            self._file.truncate(whole)  # a line that was cut is done again
            if not whole:
                self._write({"msprobe_ms": _version(), "key": key})
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, name: str, result: Mapping[str, Any]) -> None:
        """Keep a result; it is in the file when this returns. Raises OSError."""
        self.done[name] = result
        self._write({"name": name, "result": result})

    def remove(self) -> None:
        """Nothing is left to go on with."""
        with suppress(OSError):
            self.path.unlink()

    def _write(self, record: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(_plain(record)).encode("ascii") + b"\n")
        self._file.flush()

    def _read(self, key: str) -> int:
        """Read what is there; returns the bytes that are whole, 0 where nothing is, or another run's."""
        self._file.seek(0)
        whole = 0
        while (record := _record(line := self._file.readline(_LONGEST_LINE))) is not None:
            if not whole and record.get("key") != key:
                break
            if whole:
                self.done[record["name"]] = record["result"]
            whole += len(line)
        return whole


def _record(line: bytes) -> dict[str, Any] | None:
    """A line as it was written; None for the end, and for what was cut or damaged."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line, object_hook=_restored)
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    if not isinstance(record, dict) or not ("key" in record or {"name", "result"} <= record.keys()):
        return None
    return record


def _plain(content: Any) -> Any:
    """A record in which messages keep their parts: another run may tell them in another language."""
    if isinstance(content, str):
        return to_plain(content)
    if isinstance(content, Mapping):
        return {key: _plain(value) for key, value in content.items()}
    return [_plain(value) for value in content] if isinstance(content, (list, tuple)) else content


def _restored(content: dict[str, Any]) -> Any:
    """The message that an object of a line stands for, or the object itself."""
    return from_plain(content) if "template" in content else content


def run_key(dump: Path, options: Mapping[str, object]) -> str:
    """Return what tells one run from another: the dump's bytes and the options that change a result.

    :raises DumpFormatError: the dump cannot be read
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open_regular(dump) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise DumpFormatError(
            tr("{dump}: cannot be read: {strerror}", dump=dump, strerror=error.strerror or error)
        ) from error
    digest.update(options_key(options).encode())
    return digest.hexdigest()


def options_key(options: Mapping[str, object]) -> str:
    """Return what tells runs of one version with other options from each other."""
    text = json.dumps([_version(), options], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def unfinished_run(folder: Path, key: str) -> Journal | None:
    """Return the latest journal in ``folder`` of a run with this key that has not come to its end, if there is one."""
    for path in sorted(folder.glob(f"*{SUFFIX}"), key=os.fspath, reverse=True):
        with suppress(OSError):
            with open_regular(path) as file:
                record = _record(file.readline(_LONGEST_LINE))
            if record is not None and record.get("key") == key:
                return Journal(path, key)
    return None
