"""Where comparisons run: processes, a Dask cluster, any executor; and what a worker that dies costs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from rank_dumps import write_run
from repository import ROOT
from worker_tasks import dies_if_odd, dies_once, double, raises, slow_first

import msprobe_ms
from msprobe_ms.cli.main import main
from msprobe_ms.support import workers
from msprobe_ms.support.workers import Lost, given, processes, run_in_order

DIED = Lost("every worker that ran it died, perhaps for want of memory")


def test_results_come_in_the_order_of_the_tasks() -> None:
    pool = processes(20)
    try:
        assert list(run_in_order(slow_first, range(20), pool)) == list(range(20))
    finally:
        pool.close()


def test_few_results_are_held_at_a_time() -> None:
    """A slow first task must not let the others' results pile up."""
    begun: list[int] = []
    let_go = threading.Event()

    def work(number: int) -> int:
        begun.append(number)
        if number == 0:
            let_go.wait(10)
        return number

    with ThreadPoolExecutor(4) as threads:
        results = run_in_order(work, range(1000), workers.Pool(threads, 4))
        timer = threading.Timer(0.5, lambda: (counts.append(len(begun)), let_go.set()))
        counts: list[int] = []
        timer.start()
        assert next(results) == 0
        assert counts[0] <= 4 * 4
        assert list(results) == list(range(1, 1000))


def test_a_worker_that_dies_costs_a_retry(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = [f"{number}.{'dies' if number == 3 else 'lives'}" for number in range(8)]
    pool = processes(8)
    try:
        assert list(run_in_order(dies_once, [str(tmp_path / name) for name in names], pool)) == names
    finally:
        pool.close()


def test_a_task_that_kills_its_workers_is_lost_alone() -> None:
    pool = processes(6)
    try:
        found = list(run_in_order(dies_if_odd, range(6), pool))
    finally:
        pool.close()
    assert found == [0, DIED, 2, DIED, 4, DIED]


def test_a_task_that_raises_is_lost_alone() -> None:
    with ThreadPoolExecutor(2) as threads:
        assert list(run_in_order(raises, [1, 2], given(threads))) == [Lost("MemoryError: too large")] * 2


def test_an_executor_of_the_callers_that_broke_is_told() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = list(run_in_order(dies_if_odd, [1, 2, 4], given(pool)))
    assert all(isinstance(each, Lost) for each in found)
    assert "accepts no more work" in str(found[1])


def test_an_executor_that_was_shut_down_is_told(tmp_path: Path) -> None:
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    found = list(run_in_order(double, [1, 2, 4], given(threads)))
    assert len(found) == 3
    assert all(isinstance(each, Lost) and "the executor accepts no more work" in each.reason for each in found)
    root = write_run(tmp_path / "run", ranks=3)
    result = msprobe_ms.compare(root, root, executor=threads)
    assert (result.verdict, len(result.failed)) == ("incomplete", 3)


def test_no_more_processes_than_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_cores", lambda: 64)
    monkeypatch.setattr(workers, "free_memory", lambda: 10 * 2**30)
    assert (processes(5).width, processes(1000).width) == (5, 34)
    assert (processes(1000, largest=3 * 2**30).width, processes(1000, largest=3 * 2**34).width) == (3, 1)


def test_the_memory_that_is_left_is_known() -> None:
    assert 2**20 < workers.free_memory() < 2**50


SCRIPT = """
import msprobe_ms
found = msprobe_ms.compare({target!r}, {golden!r})
print("begun", len(found), found.verdict)
"""


def test_a_script_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    """Spawned processes run the file of ``__main__`` anew, unless it is hidden from them."""
    run = write_run(tmp_path / "run", ranks=3)
    (tmp_path / "script.py").write_text(SCRIPT.format(target=str(run), golden=str(run)))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, env=environment(), check=False
    )
    assert (done.returncode, done.stdout) == (0, "begun 3 consistent\n"), done.stderr


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


class DaskCluster:
    """``dask scheduler`` and ``dask worker`` as a user starts them."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "scheduler.json")
        self._folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> None:
        command = [str(Path(sys.executable).with_name("dask")), *arguments, "--scheduler-file", self.address]
        log = (self._folder / f"dask{len(self.processes)}.log").open("wb")
        self.processes.append(
            subprocess.Popen([*command, "--no-dashboard"], env=environment(), stdout=log, stderr=log, cwd=self._folder)
        )

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def dask_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    cluster = DaskCluster(tmp_path_factory.mktemp("dask"))
    try:
        cluster.start("scheduler", "--host", "127.0.0.1", "--port", "0")
        for _ in range(2):
            cluster.start("worker", "--nthreads", "1", "--no-nanny")
        yield cluster
    finally:
        cluster.stop()


def reports(folder: Path) -> dict[str, bytes]:
    """Every file by its name without the time, which pages name others by as well."""
    return {
        f"{path.stem.rpartition('_')[0]}{path.suffix}": re.sub(rb"_\d{14}\.", b".", path.read_bytes())
        for path in folder.iterdir()
    }


def test_a_cluster_gives_the_result_of_one_process(
    dask_cluster: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 ranks on two workers: every file equal to the byte, the summary over all included."""
    good, bad = write_run(tmp_path / "good", ranks=24), write_run(tmp_path / "bad", ranks=24, faulty=11)
    (bad / "step0" / "rank17" / "dump.json").write_text("{")
    arguments = ["compare", "-tp", str(bad), "-gp", str(good), "--csv", "-o"]
    assert main([*arguments, str(tmp_path / "cluster"), "--scheduler", dask_cluster.address]) == 2
    monkeypatch.setattr(workers, "_cores", lambda: 1)
    assert main([*arguments, str(tmp_path / "one")]) == 2
    ours, theirs = reports(tmp_path / "cluster"), reports(tmp_path / "one")
    assert sum(name.startswith("compare_result_rank") for name in ours) == 23
    assert b'"ranks": [\n   "rank11"\n  ]' in ours["compare_summary.json"]
    assert ours == theirs


def test_workers_of_a_cluster_that_die(tmp_path: Path) -> None:
    """Dask runs a task again by itself; what kills one worker after another is told, the rest goes on."""
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    names = ["0.lives", "1.dies", "2.kills", "3.lives"]
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as local,
        distributed.Client(local, set_as_default=False) as client,
        client.get_executor(pure=False) as executor,
    ):
        found = list(run_in_order(dies_once, [str(tmp_path / name) for name in names], workers.Pool(executor, 1)))
    assert found == [*names[:2], DIED, names[3]]


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("tcp://127.0.0.1:9", "--scheduler tcp://127.0.0.1:9: no Dask scheduler answers there"),
        ("nowhere.json", "--scheduler nowhere.json: no Dask scheduler answers there"),
        ("what is this", "--scheduler what is this: no Dask scheduler answers there"),
    ],
)
def test_an_address_where_nothing_answers(
    address: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("msprobe_ms.comparison.many.run._PATIENCE", 1)
    run = write_run(tmp_path / "run", ranks=2)
    assert main(["compare", "-tp", str(run), "-gp", str(run), "-o", str(tmp_path), "--scheduler", address]) == 2
    assert f"msprobe: {text}" in capsys.readouterr().err
