"""The files of task free_benchmark: a row for each result that is inconsistent, and a summary of all APIs."""

from __future__ import annotations

import csv
import io
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msprobe_ms.support.files import Permissions, open_regular, replacing
from msprobe_ms.support.text import printable
from msprobe_ms.support.translation import tr

#: Rows that one API may have; there may be as many as it has calls.
_MOST_ROWS = 10_000
#: A table of another tool, or of another perturbation, is left as it is: files that are tried after it.
_MOST_FILES = 1_000

#: The columns of msprobe, with the name that each framework's has for the perturbation; then our own.
_OF_MSPROBE = ("stage", "step", "api_name", "max_rel", "dtype", "shape", "output_index")
_OWN = ("call", "kind", "condition", "changed", "elements", "call_site")

_SUMMARY = ("rank", "pert_mode", "stage", "api_name", "calls", "checked", "inconsistent", "fixed", "left_out", "why")


class RowFile:
    """``free_benchmark.csv``: rows are appended as they come; there is none before the first."""

    def __init__(self, folder: Path, mode_title: str, permissions: Permissions) -> None:
        """``mode_title`` is what the column with the perturbation is called."""
        self._folder, self._permissions = folder, permissions
        self._titles = ["rank", mode_title, *_OF_MSPROBE, *_OWN]
        self._path: Path | None = None

    def add(self, values: Sequence[object]) -> None:
        """Append a row. Raises OSError."""
        path = self._path = self._path or self._own()
        with self._permissions.append(path) as file:
            if not file.tell():
                file.write(_line(self._titles))
            file.write(_line(values))

    def _own(self) -> Path:
        self._permissions.make_folder(self._folder)
        for number in range(_MOST_FILES):
            path = self._folder / (f"free_benchmark_{number}.csv" if number else "free_benchmark.csv")
            try:
                with open_regular(path) as file:
                    if file.readline(1 << 12) in (_line(self._titles), b""):
                        return path
            except FileNotFoundError:
                return path
        raise OSError(tr("{folder}: holds {most_files} tables of others", folder=self._folder, most_files=_MOST_FILES))


def _line(values: Iterable[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([_text(value) for value in values])
    return text.getvalue().encode("utf-8", "replace")


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return printable(str(value))


class ApiCounts:
    """What became of the calls of one API."""

    def __init__(self) -> None:
        self.calls = self.checked = self.inconsistent = self.fixed = self.rows = 0
        self.left_out: Counter[str] = Counter()


class Summary:
    """Counts the calls of every API, and writes ``free_benchmark_summary.csv``."""

    def __init__(self) -> None:
        self._apis: dict[str, ApiCounts] = {}
        self._lock = threading.RLock()  # a signal handler may end the recording meanwhile
        #: Names that the configuration gives and that select nothing; and why.
        self.unknown: dict[str, str] = {}

    def of(self, api: str) -> ApiCounts:
        """Return the counts of an API."""
        with self._lock:
            return self._apis.setdefault(api, ApiCounts())

    def takes_row(self, api: str) -> bool:
        """Count a row; whether it is written."""
        counts = self.of(api)
        counts.rows += 1
        return counts.rows <= _MOST_ROWS

    @property
    def totals(self) -> tuple[int, int, int]:
        """Calls, those checked or fixed, and those inconsistent."""
        found = list(self._apis.values())
        checked = sum(each.checked + each.fixed for each in found)
        return sum(each.calls for each in found), checked, sum(each.inconsistent for each in found)

    @property
    def inconsistent(self) -> list[str]:
        """The APIs that were found inconsistent, in the order they were first called in."""
        return [api for api, counts in list(self._apis.items()) if counts.inconsistent]

    def write(self, folder: Path, rank: int | None, mode: str, stage: str, permissions: Permissions) -> Path:
        """Write the table anew; return its path. Raises OSError."""
        permissions.make_folder(folder)
        name = f"free_benchmark_summary_rank{rank}.csv" if rank else "free_benchmark_summary.csv"
        with replacing(folder / name, permissions) as file:
            file.write(_line(_SUMMARY))
            for api, counts in sorted(self._apis.items()):
                why = "; ".join(f"{reason}: {count}" for reason, count in counts.left_out.most_common())
                figures = (counts.calls, counts.checked, counts.inconsistent, counts.fixed)
                file.write(_line([rank, mode, stage, api, *figures, sum(counts.left_out.values()), why]))
            for name_given, why in self.unknown.items():
                file.write(_line([rank, mode, stage, name_given, 0, 0, 0, 0, 0, why]))
        return folder / name
