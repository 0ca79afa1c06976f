"""The data of a page: its calls, its values and their figures, for a comparison or for one dump alone."""

from __future__ import annotations

import numpy as np

from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.page.calls import Calls
from msprobe_ms.comparison.page.choice import rows_that_matter
from msprobe_ms.comparison.page.figures import Figures
from msprobe_ms.comparison.page.rows import Rows
from msprobe_ms.dump.model import Dump
from msprobe_ms.page.columns import Columns


class Content:
    """``columns`` of a page, and what its ``index`` says of them.

    ``sides``     the target and the golden; the one dump where there is no golden
    ``all_rows``  the figures of all rows, however many
    ``stacks``    the places in source code that made the calls, and the paths of the dumps
    """

    def __init__(self, comparison: Comparison, *sides: Dump, all_rows: bool = False, stacks: bool = True) -> None:
        self.columns = Columns()
        self.calls = Calls(comparison.pairs, stacks=stacks)
        self.rows = Rows(comparison, self.calls)
        chosen = None if all_rows else rows_that_matter(comparison, self.rows, self.calls)
        told = None if chosen is None else np.isin(np.arange(len(self.rows)), chosen)
        self.calls.add_to(self.columns, self.rows.starts[:-1])
        tolerated = self.rows.add_to(self.columns, told)
        self.rows.add_asked(self.columns, comparison.asked)
        if chosen is not None:
            self.columns.add("figure_rows", chosen.astype(np.uint32), delta=True)
        figures = Figures(self.rows, np.arange(len(self.rows)) if chosen is None else chosen)
        metrics: list[dict[str, str]] = []
        if len(sides) > 1:
            metrics = figures.add_to(self.columns)
        else:
            figures.add_target_to(self.columns)
        self.index: dict[str, object] = {
            "format": 1,
            "kind": "comparison" if len(sides) > 1 else "dump",
            "mode": str(comparison.mode),
            "calls": len(comparison.pairs),
            "rows": len(self.rows),
            "tolerated": tolerated,
            "metrics": metrics,
            "truncated": None if chosen is None else {"rows": len(chosen), "command": "--html-rows all"},
            "sides": [_described(dump, stacks) for dump in sides],
        }


def _described(dump: Dump, path: bool) -> dict[str, str]:
    where = str(dump.path) if path else ""
    return {"path": where, "framework": dump.framework, "level": dump.level, "task": dump.task}
