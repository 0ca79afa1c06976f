"""The import name of msprobe, so that scripts written for it run unchanged; everything comes from ``msprobe_ms``."""

from __future__ import annotations

import os

from msprobe_ms.compat.neighbour import warn_of_conflict as _warn_of_conflict

__all__ = ["GradComparator"]

_warn_of_conflict()


class GradComparator:
    """What scripts of msprobe 1.1.0 call; the command is ``msprobe grad_compare``."""

    @staticmethod
    def compare_distributed(
        path1: str | os.PathLike[str], path2: str | os.PathLike[str], output_dir: str | os.PathLike[str]
    ) -> None:
        """Compare the gradients of two trainings, log the verdict, and write ``rank{r}/similarities.csv`` and the rest.

        Raises UsageError where a folder holds no gradients, or there is no rank or step that both have.
        """
        from pathlib import Path

        from msprobe_ms.comparison.pairing.rules.files import load_mappings
        from msprobe_ms.gradients.compare import compare_gradients
        from msprobe_ms.gradients.report import gradient_lines, write_gradients
        from msprobe_ms.support.log import logger

        comparison = compare_gradients(Path(path1), Path(path2), load_mappings(None, None, None))
        for line in gradient_lines(comparison):
            logger.info("%s", line)
        write_gradients(comparison, Path(output_dir))
