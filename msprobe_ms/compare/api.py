"""Comparing from Python: what ``msprobe_ms.compare`` gives for two dumps of one rank and step."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from msprobe_ms.compare.model import Comparison, Origin
from msprobe_ms.compare.notebook import comparison_html
from msprobe_ms.compare.places import plan
from msprobe_ms.compare.profiles import PROFILES
from msprobe_ms.compare.report import summary, table, write_table, writing
from msprobe_ms.compare.run import Options, Outcome, compare_dumps
from msprobe_ms.compare.verdict import verdict_lines
from msprobe_ms.config.values import suggestion
from msprobe_ms.errors import CompareError, MappingError, UsageError
from msprobe_ms.mapping.files import Mappings, load_mappings
from msprobe_ms.store.find import find_places
from msprobe_ms.store.model import Dump
from msprobe_ms.store.reader import read_dump

if TYPE_CHECKING:
    import pandas

    from msprobe_ms.compare.api_ranks import ComparedRanks

#: Suffixes a table may have.
_TABLES = (".xlsx", ".csv")


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
        """The rows of the report; needs pandas (the extra ``dataframe``)."""
        import pandas

        titles, rows = self._table()
        return pandas.DataFrame([row for row, _ in rows], columns=titles)

    def to_xlsx(self, path: str | Path) -> Path:
        """Write the coloured table. Raises UsageError: it cannot be written."""
        return self._write(Path(path), ".xlsx")

    def to_csv(self, path: str | Path) -> Path:
        """Write the table, without colours. Raises UsageError: it cannot be written."""
        return self._write(Path(path), ".csv")

    def to_json(self, path: str | Path) -> Path:
        """Write the summary. Raises UsageError: it cannot be written."""
        with writing(Path(path)) as file:
            file.write((json.dumps(self.summary, indent=1, allow_nan=False) + "\n").encode("ascii"))
        return Path(path)

    def _table(self) -> tuple[list[str], Iterator[tuple[list[Any], str]]]:
        return table(self.comparison, self._options.report, stack=self._options.stack)

    def _write(self, path: Path, suffix: str) -> Path:
        if path.suffix != suffix:
            raise UsageError(f"{path}: accepted is a file name that ends with {suffix}")
        titles, rows = self._table()
        write_table(path, titles, rows, self._options.report.colours)
        return path

    def __str__(self) -> str:
        """What the command prints."""
        return "\n".join(verdict_lines(Outcome("", self.target, self.golden, self.comparison, [])))

    def __repr__(self) -> str:
        return f"<{self.verdict}: {self.summary['matched']} values compared, {len(self.origins)} origins>"

    def _repr_html_(self) -> str:
        return comparison_html(self.comparison)


def compared(
    target: Any,
    golden: Any,
    *,
    layer_mapping: str | Path | Mapping[str, Any] | None = None,
    cell_mapping: str | Path | Mapping[str, Any] | Literal[True] | None = None,
    data_mapping: str | Path | Mapping[str, Any] | None = None,
    fuzzy: bool = False,
    profile: str = "own",
    ranks: Collection[int] = (),
    steps: Collection[int] = (),
    executor: Executor | None = None,
) -> Compared | ComparedRanks:
    """What ``msprobe_ms.compare`` does; see there."""
    if profile not in PROFILES:
        raise UsageError(
            f"compare: profile {profile!r}{suggestion(profile, PROFILES)}; accepted are {', '.join(PROFILES)}"
        )
    options = Options(_mappings(cell_mapping, layer_mapping, data_mapping), fuzzy=fuzzy, profile=profile)
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


def _mappings(cell: Any, layer: Any, data: Any) -> Mappings:
    """Mappings from files, or from dicts, which are read as files are: with the same checks and the same meaning."""
    with tempfile.TemporaryDirectory(prefix="msprobe_mapping_") as folder:

        def file(kind: str, given: Any) -> Any:
            if given is None or given is True:
                return given
            if not isinstance(given, Mapping):
                return Path(given)
            path = Path(folder) / f"{kind}.yaml"
            path.write_text(yaml.safe_dump(_plain(given), allow_unicode=True, sort_keys=False), encoding="utf-8")
            return path

        try:
            return load_mappings(file("cell", cell), file("layer", layer), file("data", data))
        except MappingError as error:
            raise MappingError(re.sub(rf"{re.escape(folder)}\S+?\.yaml", "given as a dict", str(error))) from None


def _plain(given: Any) -> Any:
    """Dicts of texts, whatever kind of mapping they were."""
    if isinstance(given, Mapping):
        return {str(key): _plain(value) for key, value in given.items()}
    return given
