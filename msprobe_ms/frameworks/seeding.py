"""``seed_all``: make two runs of a script draw the same random numbers."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Largest seed numpy takes.
_LARGEST_SEED = 2**32 - 1


def seed_process(seed: int, mode: bool) -> None:
    """Seed Python, numpy and the hash of child processes; ``mode`` asks the collective library for determinism.

    Raises UsageError for a seed that is not an integer from 0 to 2**32 - 1 or a mode that is not a bool.
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= _LARGEST_SEED:
        raise UsageError(
            tr(
                "seed_all: seed {seed} is not accepted; give an integer from 0 to {largest_seed}",
                seed=repr(seed),
                largest_seed=_LARGEST_SEED,
            )
        )
    if not isinstance(mode, bool):
        raise UsageError(tr("seed_all: mode {mode} is not accepted; give True or False", mode=repr(mode)))
    if os.environ.get("PYTHONHASHSEED") != str(seed):
        os.environ["PYTHONHASHSEED"] = str(seed)
        if mode:  # who only seeds has no use for a word on every start
            _tell_of_hashes(os.getpid())
    os.environ["HCCL_DETERMINISTIC"] = _collectives(mode)
    random.seed(seed)
    np.random.seed(seed)


def _collectives(mode: bool) -> str:
    """The value of ``HCCL_DETERMINISTIC``: in lower case, of any other MindSpore warns."""
    return str(mode).lower()


@cache
def _tell_of_hashes(_process: int) -> None:
    """Once a process, which a forked child is too."""
    seed = os.environ["PYTHONHASHSEED"]
    logger.info(
        tr(
            "seed_all: one thing may still differ between runs: the order of strings in a Python set; if your "
            "script depends on it, start the script with PYTHONHASHSEED={seed} python …",
            seed=seed,
        )
    )


def seed_mindspore(seed: int, mode: bool) -> None:
    """Seed MindSpore; ``mode`` turns deterministic computing on or off."""
    import mindspore
    from mindspore.communication import GlobalComm

    mindspore.set_seed(seed)
    wanted = "ON" if mode else "OFF"
    if mindspore.get_context("deterministic") != wanted:
        with _no_advice():
            mindspore.set_context(deterministic=wanted)
    os.environ["HCCL_DETERMINISTIC"] = _collectives(mode)  # which the context takes out of the environment
    if mode and GlobalComm.INITED:
        logger.warning(tr("seed_all: communication was initialised before; HCCL_DETERMINISTIC has no effect any more"))


@contextmanager
def _no_advice() -> Iterator[None]:
    """Keep MindSpore from logging that ``mindspore.set_deterministic`` is newer.

    That function raises when it is called a second time in a process: the one call is the script's.
    """
    log = logging.getLogger(f"ME.mindspore.log.{os.getpid()}")  # MindSpore's own

    def is_wanted(record: logging.LogRecord) -> bool:
        return "mindspore.set_deterministic" not in record.getMessage()

    log.addFilter(is_wanted)
    try:
        yield
    finally:
        log.removeFilter(is_wanted)


def seed_pytorch(seed: int, mode: bool) -> None:
    """Seed every device, those that start later included; with ``mode`` use deterministic kernels from now on.

    Without ``mode`` the choice of kernels stays as the script made it.
    """
    import torch

    torch.manual_seed(seed)
    if mode:
        # Read by cuBLAS when its first handle is made; without it PyTorch refuses cuBLAS calls in this mode.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
