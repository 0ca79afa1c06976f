"""Comparing from Python: what ``msprobe_ms.compare`` gives for two dumps of one rank and step."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from msprobe_ms.compare.algorithms import load_algorithms
from msprobe_ms.compare.csv_table import Cell
from msprobe_ms.compare.frames import imported_pandas
from msprobe_ms.compare.model import Comparison, Origin
from msprobe_ms.compare.notebook import comparison_html
from msprobe_ms.compare.places import plan
from msprobe_ms.compare.profiles import PROFILES
from msprobe_ms.compare.report import summary, table, write_table, writing
from msprobe_ms.compare.run import Options, Outcome, compare_dumps
from msprobe_ms.compare.thresholds import load_thresholds
from msprobe_ms.compare.verdict import verdict_lines
from msprobe_ms.config.values import suggestion
from msprobe_ms.errors import CompareError, MsprobeError, UsageError
from msprobe_ms.mapping.files import load_mappings
from msprobe_ms.printable import one_a_line
from msprobe_ms.store.find import find_places
from msprobe_ms.store.model import Dump
from msprobe_ms.store.reader import read_dump

if TYPE_CHECKING:
    import pandas

    from msprobe_ms.compare.api_ranks import ComparedRanks

#: Texts of a table for floats that a spreadsheet has no number for.
_NOT_FINITE = frozenset(("inf", "-inf", "nan"))


class Compared:
    """Two dumps of one rank and step, compared; ``comparison`` has the pairs and rows."""

    def __init__(self, target: Dump, golden: Dump, options: Options) -> None:
        self._options = options
        self.target, self.golden = target, golden
        self.comparison: Comparison = compare_dumps(target, golden, options)

    @property
    def verdict(self) -> str:
        """``consistent``, ``divergent`` or ``incomplete``."""
        return self.comparison.verdict

    @property
    def origins(self) -> list[Origin]:
        """Where error begins, in execution order."""
        return self.comparison.origins

    @property
    def summary(self) -> dict[str, Any]:
        """The content of compare_summary.json."""
        return summary(self.comparison)

    @property
    def frame(self) -> pandas.DataFrame:
        """The rows of the report, infinity and NaN as floats; needs pandas (the extra ``dataframe``)."""
        pandas = imported_pandas()
        titles, rows = table(self.comparison, self._options.report)
        columns = [_numbers(cells) for cells in zip(*(row for row, _ in rows), strict=True)]
        return pandas.DataFrame(list(zip(*columns, strict=True)), columns=titles)

    def to_xlsx(self, path: str | Path) -> Path:
        """Write the coloured table to a file; of many ranks it is a folder. Raises UsageError: it cannot be written."""
        return self._write(Path(path), ".xlsx")

    def to_csv(self, path: str | Path) -> Path:
        """Write the table, without colours. Raises UsageError: it cannot be written."""
        return self._write(Path(path), ".csv")

    def to_json(self, path: str | Path) -> Path:
        """Write the summary. Raises UsageError: it cannot be written."""
        with writing(Path(path)) as file:
            file.write((json.dumps(self.summary, indent=1, allow_nan=False) + "\n").encode("ascii"))
        return Path(path)

    def _write(self, path: Path, suffix: str) -> Path:
        if path.suffix != suffix:
            raise UsageError(f"{path}: accepted is a file name that ends with {suffix}, as this is one rank and step")
        titles, rows = table(self.comparison, self._options.report)
        write_table(path, titles, rows, self._options.report.colours)
        return path

    def __str__(self) -> str:
        """What the command prints."""
        return one_a_line(verdict_lines(Outcome("", self.target, self.golden, self.comparison, [])))

    def __repr__(self) -> str:
        return f"<{self.verdict}: {self.summary['matched']} values compared, {len(self.origins)} origins>"

    def _repr_html_(self) -> str:
        return comparison_html(self.comparison)


def _numbers(cells: Sequence[Cell]) -> Sequence[Cell]:
    """A column's cells; where all are numbers, nothing, or texts for what is not finite, such texts as floats."""
    texts = {cell for cell in cells if isinstance(cell, str)}
    if not texts or not all(text.strip() in _NOT_FINITE for text in texts):
        return cells
    if any(isinstance(cell, bool) for cell in cells):
        return cells
    return [float(cell) if isinstance(cell, str) else cell for cell in cells]


def compared(
    target: Any,
    golden: Any,
    *,
    layer_mapping: Any = None,
    cell_mapping: Any = None,
    api_mapping: Any = None,
    data_mapping: Any = None,
    fuzzy: bool = False,
    profile: str = "own",
    thresholds: Any = None,
    algorithms: Iterable[str] = (),
    ranks: Collection[int] = (),
    steps: Collection[int] = (),
    executor: Executor | None = None,
) -> Compared | ComparedRanks:
    """What ``msprobe_ms.compare`` does; see there."""
    if profile not in PROFILES:
        raise UsageError(
            f"compare: profile {profile!r}{suggestion(profile, PROFILES)}; accepted are {', '.join(PROFILES)}"
        )
    with _Files() as files:
        layer = None if layer_mapping is True else files.of("layer", layer_mapping)
        options = Options(
            load_mappings(
                files.of("cell", cell_mapping), layer, files.of("data", data_mapping), files.of("api", api_mapping)
            ),
            align=layer_mapping is True,
            fuzzy=fuzzy,
            profile=profile,
            thresholds=load_thresholds(files.of("thresholds", thresholds)),
            algorithms=load_algorithms(algorithms),
        )
    if isinstance(target, Dump) or isinstance(golden, Dump):
        return Compared(_one_dump(target), _one_dump(golden), options)
    chosen = plan(_path(target), _path(golden), ranks=ranks, steps=steps, profile=profile)
    if len(chosen.twins) > 1:
        from msprobe_ms.compare.api_ranks import ComparedRanks

        return ComparedRanks(chosen, options, executor)
    (twins,) = chosen.twins
    return Compared(read_dump(twins.target), read_dump(twins.golden), options)


def _path(side: Any) -> Path:
    if isinstance(side, (str, Path)):
        return Path(side)
    if isinstance(path := getattr(side, "path", None), Path):  # a recording
        return path
    raise UsageError(
        f"compare: {type(side).__name__} is not accepted; accepted are a path, a Dump, or what msprobe_ms.record gave"
    )


def _one_dump(side: Any) -> Dump:
    if isinstance(side, Dump):
        return side
    places = find_places(_path(side))
    if len(places) > 1:
        raise CompareError(f"{_path(side)}: {len(places)} dumps, to compare with one: name one of its folders")
    return read_dump(next(iter(places.values())))


class _Files:
    """Content given as dicts and lists, as the yaml files it would stand in: with the same checks and meaning."""

    def __enter__(self) -> _Files:
        self._folder = tempfile.TemporaryDirectory(prefix="msprobe_given_")
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._folder.cleanup()
        if isinstance(error, MsprobeError):
            # Nobody knows the file.
            text = re.sub(rf"{re.escape(self._folder.name)}\S+?\.yaml", "given as a value", str(error))
            raise type(error)(text) from None

    def of(self, kind: str, given: Any) -> Any:
        """A path; None and True as they are."""
        if given is None or given is True:
            return given
        if not isinstance(given, (Mapping, Sequence)) or isinstance(given, str):
            return Path(given)
        path = Path(self._folder.name) / f"{kind}.yaml"
        path.write_text(yaml.safe_dump(_plain(given), allow_unicode=True, sort_keys=False), encoding="utf-8")
        return path


def _plain(given: Any) -> Any:
    """Dicts and lists, whatever kind of mapping and sequence they were."""
    if isinstance(given, Mapping):
        return {key: _plain(value) for key, value in given.items()}
    return [_plain(each) for each in given] if isinstance(given, (list, tuple)) else given
