"""What ``msprobe_ms.compare`` returns for two dumps of one rank and step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.comparison.api.dataframe import imported_pandas
from msprobe_ms.comparison.api.notebook import comparison_html
from msprobe_ms.comparison.model import Comparison, Origin, Outcome
from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.files import summary, table, write_table, writing
from msprobe_ms.comparison.reporting.terminal import verdict_lines
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.text import one_a_line

if TYPE_CHECKING:
    import pandas


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
