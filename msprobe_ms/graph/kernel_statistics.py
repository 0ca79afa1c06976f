"""Tensors of kernels → ``statistic.csv`` in the framework's own columns, where the framework writes none itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msprobe_ms.graph.kernel_files import KernelFile


def reduce(files: Sequence[KernelFile], categories: Sequence[str] = ("max", "min", "avg", "l2norm")) -> list[Path]:
    """Write ``statistic.csv`` into each folder of ``files``, then remove these files; return the tables.

    ``categories`` are §4's: max, min, mean (or avg), l2norm, negative zero count, positive zero count, zero count,
    nan count, negative inf count, positive inf count, count, hash (md5, hash:md5, hash:sha1). A table that is there
    already keeps its rows. Files whose tensor cannot be read stay, and the log says so.

    :raises UsageError: an unknown category
    :raises OSError: the disk refuses; then nothing is removed
    """
    raise NotImplementedError
