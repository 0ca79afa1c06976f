"""Kernel files → the compiled graphs that they are of, where MindSpore wrote these beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from io import TextIOWrapper
from pathlib import Path

from msprobe_ms.dump.kernels.graph_ir import Graph
from msprobe_ms.dump.kernels.kernel_file import KernelFile
from msprobe_ms.dump.kernels.scope_path import Cells
from msprobe_ms.support.log import logger
from msprobe_ms.support.regular import leads_out, open_regular


class Graphs:
    """The graphs of kernel files, each read once."""

    def __init__(self, files: Iterable[KernelFile], cells: Cells | None = None) -> None:
        self._cells = cells
        self._read: dict[Path, Graph | None] = {}
        self._ran: dict[Path, dict[str, int]] = {}
        for place, file in enumerate(files):
            self._ran.setdefault(file.path.parent.parent, {}).setdefault(file.op_name.replace("/", "_"), place)

    def of(self, folder: Path) -> Graph | None:
        """The graph whose files lie in ``rank_R/Net/{graph}/{iteration}``; None where none tells anything."""
        if folder.parent not in self._read:
            graph = read_graph(folder, self._cells)
            ran = self._ran.get(folder.parent, {})
            if graph is not None:
                graph.prepare(ran, partial(self._beside, folder))
            self._read[folder.parent] = graph
        return self._read[folder.parent]

    def _beside(self, folder: Path) -> Iterator[Graph]:
        """The graphs of the same rank."""
        for graph in sorted(folder.parent.parent.iterdir()):
            if graph.is_dir() and (found := self.of(graph / folder.name)) is not None:
                yield found


def read_graph(folder: Path, cells: Cells | None = None) -> Graph | None:
    """The graph whose kernel files lie in ``folder``, ``rank_R/Net/{graph}/{iteration}``; None where none is told."""
    name = f"ms_output_trace_code_graph_{folder.parent.name}.ir"
    for above in folder.absolute().parents[:3]:
        path = above / "graphs" / name
        try:
            if path.is_file() and not leads_out(path, above):
                with open_regular(path) as file, TextIOWrapper(file, "utf-8", errors="replace") as lines:
                    return Graph(lines, cells)
        except OSError as error:
            logger.warning("%s: cannot be read: %s", path, error.strerror or error)
    return None
