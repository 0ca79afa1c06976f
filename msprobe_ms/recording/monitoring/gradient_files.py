"""The files of task ``grad_probe`` as they are written: a folder of the rank's own, a table and directions a step."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from msprobe_ms.dump.gradient_files import direction_file, directions, summary, summary_file, titles
from msprobe_ms.recording.selection.process_rank import ProcessRank
from msprobe_ms.support.files import replacing
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: Folders that are tried where those before hold the files of other runs.
_MOST_RUNS = 10_000


class GradientFiles:
    """The folder of one rank, which is made with its first step."""

    def __init__(self, config: Config, rank: ProcessRank) -> None:
        self.config = config
        self.folder: Path | None = None
        #: Steps whose table is there.
        self.written = 0
        self._rank = rank

    def table(self, step: int) -> GradientTable:
        """Begin a step. Raises OSError where there can be no folder."""
        self.folder = self.folder or self._own_folder()
        return GradientTable(self, self.folder, step)

    def _own_folder(self) -> Path:
        """Make the rank's folder; where another run has written there, one below a folder with a number."""
        rank, permissions = f"rank{self._rank.known or 0}", self.config.permissions
        for run in range(_MOST_RUNS):
            parent = self.config.dump_path / str(run) if run else self.config.dump_path
            permissions.make_folder(parent)
            try:
                (parent / rank).mkdir(permissions.folder)
            except FileExistsError:
                continue
            if run:
                logger.warning(
                    tr(
                        "monitor: {dump_path} holds another run; this one goes to {parent}",
                        dump_path=self.config.dump_path,
                        parent=parent,
                    )
                )
            return parent / rank
        raise OSError(tr("{dump_path}: holds {most_runs} runs", dump_path=self.config.dump_path, most_runs=_MOST_RUNS))


class GradientTable:
    """One step; its table comes last, so that a step that has one is whole."""

    def __init__(self, files: GradientFiles, folder: Path, step: int) -> None:
        self._files = files
        self._folder = folder
        self._step = step
        self._text = io.StringIO()
        self._rows = csv.writer(self._text, lineterminator="\n")
        self._rows.writerow(titles(files.config.grad_level, files.config.bounds))

    def add(self, name: str, gradient: np.ndarray) -> None:
        """Write what the level has of one gradient. Raises OSError."""
        config = self._files.config
        self._rows.writerow(summary(name, gradient, config.grad_level, config.bounds))
        if config.grad_level == "L0":
            return
        file = self._folder / direction_file(self._step, name)
        config.permissions.make_folder(file.parent)
        with replacing(file, config.permissions) as opened:
            np.save(opened, directions(gradient), allow_pickle=False)

    def close(self) -> None:
        """Write the table. Raises OSError."""
        with replacing(self._folder / summary_file(self._step), self._files.config.permissions) as opened:
            opened.write(self._text.getvalue().encode("utf-8", "backslashreplace"))
        self._files.written += 1
