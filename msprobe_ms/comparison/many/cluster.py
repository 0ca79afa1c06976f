"""Use a Dask cluster as one ``concurrent.futures.Executor``; the package is imported only where one is used."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.workers import Pool

#: Seconds to wait for the scheduler, and for a first worker.
_PATIENCE = 60


@contextmanager
def cluster(address: str) -> Iterator[Pool]:
    """Yield the workers of the scheduler at ``address`` (``tcp://host:8786``, or the path of its scheduler file).

    Workers read the dumps and write the reports themselves: they need the same paths, and msprobe_ms.

    :raises UsageError: distributed is not installed, nothing answers at the address, or there is no worker
    """
    try:
        from distributed import Client
        from distributed import TimeoutError as NoAnswer  # before Python 3.11 another one than Python's
    except ImportError as error:
        raise UsageError('--scheduler: needs Dask: pip install "msprobe-ms[cluster]"') from error
    try:
        where = {"scheduler_file": _awaited(address)} if address.endswith(".json") else {"address": address}
        client = Client(**where, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, NoAnswer) as error:
        raise UsageError(
            f"--scheduler {address}: no Dask scheduler answers there ({error}); accepted is an address such as "
            "tcp://host:8786, or a scheduler file"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except NoAnswer as error:
            raise UsageError(
                f"--scheduler {address}: it has no worker; start some with: dask worker {address}"
            ) from error
        width = sum(client.nthreads().values())
        with client.get_executor(pure=False) as executor:
            yield Pool(executor, width)


def _awaited(file: str) -> str:
    """A scheduler's file, which it writes when it is ready; distributed itself would wait for ever."""
    deadline = time.monotonic() + _PATIENCE
    while not Path(file).exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return str(Path(file).resolve(strict=True))
