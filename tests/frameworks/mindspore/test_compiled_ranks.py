"""Two ranks that train in compiled graphs: kernels at level L2, then Cells at level L0, in one job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from forked import run_forked_ranks
from recording import Step

from msprobe_ms.dump.reading.reader import read_dump

SCRIPT = Path(__file__).with_name("two_compiled_ranks.py")


class Job(NamedTuple):
    """The folder that a job dumped into, and what each rank printed."""

    folder: Path
    printed: list[dict[str, Any]]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("ranks")
    ended, logs = run_forked_ranks(folder, SCRIPT)
    assert ended.returncode == 0, "\n".join([ended.stdout, ended.stderr, *logs])
    return Job(folder, [json.loads(re.findall(r'^\{"kernels".*\}$', log, re.MULTILINE)[0]) for log in logs])


def leaves_with_files(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and "data_name" in value:
        yield value
    elif isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from leaves_with_files(member)


def test_each_rank_has_its_own_configuration_and_kernels(job: Job) -> None:
    first, second = (printed["kernels"] for printed in job.printed)
    assert first["loss"] != second["loss"] and first["weight"] == second["weight"]
    dump = job.folder / "kernels" / "dump"
    assert {path.name for path in dump.glob("*.json")} == {f"kernel_kbyk_dump_rank{rank}.json" for rank in (0, 1)}
    assert {path.name for path in (dump / "step0").iterdir()} == {"rank0", "rank1"}
    sums = []
    for rank in (0, 1):
        found = read_dump(dump / "step0" / f"rank{rank}")
        index = json.loads((dump / "step0" / f"rank{rank}" / "dump.json").read_text())
        raw = sorted(dump.glob(f"rank_{rank}/Net/*/0/*.npy"))
        root = Path(index["dump_data_dir"])
        assert root == dump / f"rank_{rank}" / "Net"
        names = [leaf["data_name"] for leaf in leaves_with_files(index["data"])]
        assert sorted(names) == [str(path.relative_to(root)) for path in raw]
        entry = next(entry for name, entry in found.entries.items() if name.startswith("Kernel.AllReduce."))
        sums.append([found.tensors.load(item).tolist() for item in entry.in_state("output")])
    assert sums[0] == sums[1] and sums[0]


def test_each_rank_has_its_own_cells_and_trains_as_without(job: Job) -> None:
    assert all(printed["same"] for printed in job.printed)
    steps = []
    for rank in (0, 1):
        folder = job.folder / "cells" / "step0" / f"rank{rank}"
        steps.append(Step(folder, json.loads((folder / "dump.json").read_text())["data"], {}, {}))
    assert list(steps[0].data) == list(steps[1].data)
    for rank, step in enumerate(steps):
        (inner,) = step.forward("Cell.summed.fc.Dense")["output"]
        (outer,) = step.forward("Cell.summed.Summed")["output"]
        np.testing.assert_array_equal(step.array(inner), np.full((4, 2), 3 * (rank + 1)))
        np.testing.assert_array_equal(step.array(outer), np.full((4, 2), 3 + 6))
