"""A Dask cluster as one ``concurrent.futures.Executor``; the package is imported only where one is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msprobe_ms.compare.executors import Pool
from msprobe_ms.errors import UsageError

#: Seconds to wait for the scheduler, and for a first worker.
_PATIENCE = 30


@contextmanager
def cluster(address: str) -> Iterator[Pool]:
    """The workers of the scheduler at ``address`` (``tcp://host:8786``, or the path of its scheduler file).

    Workers read the dumps and write the reports themselves: they need the same paths, and msprobe_ms.

    :raises UsageError: distributed is not installed, nothing answers at the address, or there is no worker
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError('--scheduler: needs Dask: pip install "msprobe-ms[cluster]"') from error
    try:
        # It would wait for the file for ever.
        where = {"scheduler_file": str(Path(address).resolve(strict=True))} if address.endswith(".json") else {}
        client = Client(**(where or {"address": address}), timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"--scheduler {address}: no Dask scheduler answers there ({error}); accepted is an address such as "
            "tcp://host:8786, or a scheduler file"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise UsageError(
                f"--scheduler {address}: it has no worker; start some with: dask worker {address}"
            ) from error
        width = sum(client.nthreads().values())
        with client.get_executor(pure=False) as executor:
            yield Pool(executor, width)
