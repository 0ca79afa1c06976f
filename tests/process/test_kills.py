"""Trainings that end at any moment in any way lose nothing that had finished: a few of those that `make kills` runs."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked import run_forked
from processes import environment
from recording import leaves
from thorough import sampled, thorough

from torture.kills.__main__ import Ending
from torture.kills.inspection import Whole, inspect
from torture.kills.plans import WAYS, Plan, Setting, ends, settings
from torture.kills.runs import Run, Trainings, trainings
from torture.kills.training import DUMP

DYNAMIC = Setting("mindspore", "dynamic", "mix", "tensor")
PYTORCH = Setting("pytorch", "dynamic", "mix", "async")

SAMPLE = [
    *((DYNAMIC, way) for way in ("kill", "kill at file", "exception")),
    *((PYTORCH, way) for way in ("kill", "term", "term handled", "term closing", "interrupt", "exit", "memory")),
    (Setting("mindspore", "jit", "L0", "md5"), "kill"),
    (Setting("mindspore", "dynamic", "L2", "statistics"), "kill at file"),
]
#: Of these, what `make test` tries.
TRIED = [SAMPLE[number] for number in (1, 3, 5, 7, 9, 10)]


@pytest.fixture(scope="module")
def started() -> Iterator[Trainings]:
    with trainings() as found:
        yield found


@pytest.fixture(scope="module")
def ending(started: Trainings, tmp_path_factory: pytest.TempPathFactory) -> Ending:
    return Ending(started, tmp_path_factory.mktemp("kills"), random.Random(0))


@pytest.mark.parametrize(("setting", "way"), sampled(SAMPLE, TRIED.__contains__), ids=lambda each: str(each))
def test_nothing_that_had_finished_is_lost_and_nothing_is_half(ending: Ending, setting: Setting, way: str) -> None:
    plan, found = ending.run(setting, way, SAMPLE.index((setting, way)))
    assert not found.problems, plan


def test_every_way_ends_every_setting() -> None:
    pairs = list(ends(1000, random.Random(0)))
    assert len(pairs) == 1000
    assert set(pairs) == {(setting, way) for setting in settings() for way in WAYS}
    assert {way for _, way in SAMPLE} == set(WAYS)


@pytest.mark.parametrize(("kind", "stride", "least"), [("files", 14, 25), thorough(("device", 18, 15))])
def test_a_signal_handler_may_end_the_recording_wherever_it_is(
    tmp_path: Path, kind: str, stride: int, least: int
) -> None:
    """On a line that holds a lock, too: a script that is told to end must not wait for itself."""
    script = Path(__file__).with_name("closed_by_signal.py")
    ended = run_forked(script, tmp_path, str(stride), kind, framework="torch", env=environment())
    assert ended.returncode == 0, ended.stderr[-3000:]
    count = int(ended.stdout)
    assert count > least
    dumps = [json.loads(path.read_text())["data"] for path in tmp_path.rglob("dump.json")]
    assert len(dumps) == count + 1
    whole = [name for name in max(dumps, key=len) if ".forward" in name]
    for data in dumps:
        assert [name for name in data if ".forward" in name] == [name for name in whole if name in data]
    figures = [leaf["Max"] for data in dumps for _, leaf in leaves(data)]
    assert figures
    assert None not in figures
    assert [*tmp_path.rglob("dump.journal"), *tmp_path.rglob("dump_error_info.log"), *tmp_path.rglob(".*.tmp")] == []


# -- what would be found -----------------------------------------------------------------------------------------------


def drop_entry(folder: Path) -> None:
    content = json.loads((folder / "dump.json").read_text())
    del content["data"]["Cell.layers.0.fc.Dense.forward.1"]
    (folder / "dump.json").write_text(json.dumps(content))


def drop_gradient(folder: Path) -> None:
    content = json.loads((folder / "dump.json").read_text())
    content["data"]["Cell.head.Dense.backward.0"]["output"] = [None]
    (folder / "dump.json").write_text(json.dumps(content))


def cut_dump(folder: Path) -> None:
    content = (folder / "dump.json").read_bytes()
    (folder / "dump.json").write_bytes(content[:-100])


def drop_stack(folder: Path) -> None:
    (folder / "stack.json").unlink()


def tensor_file(folder: Path) -> Path:
    return folder / "dump_tensor_data" / "Functional.exp.1.forward.output.0.npy"


def drop_tensor(folder: Path) -> None:
    tensor_file(folder).unlink()


def cut_tensor(folder: Path) -> None:
    tensor_file(folder).write_bytes(tensor_file(folder).read_bytes()[:-1])


def other_tensor(folder: Path) -> None:
    shutil.copy(tensor_file(folder).with_name("Functional.exp.0.forward.output.0.npy"), tensor_file(folder))


def leave_journal(folder: Path) -> None:
    (folder / "dump.journal").touch()


def log_error(folder: Path) -> None:
    (folder / "dump_error_info.log").write_text("2026-01-01 12:00:00 stop: KeyError: 'x' (/a/b.py:7)\n")


@pytest.fixture(scope="module")
def whole(started: Trainings, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return started.run(Plan(DYNAMIC), tmp_path_factory.mktemp("whole") / "run")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (drop_entry, "1 calls that were over are lost: ['Cell.layers.0.fc.Dense.forward.1']"),
        (drop_gradient, "Cell.head.Dense.backward.0 was over, but is not as in a training that nobody ended"),
        (cut_dump, "dump.json is half"),
        (drop_stack, "no stack.json"),
        (drop_tensor, "1 tensor files are lost: Functional.exp.1.forward.output.0.npy"),
        (cut_tensor, "is half"),
        (other_tensor, "holds another tensor than was told"),
        (leave_journal, "dump.journal is left behind"),
        (log_error, "stop: KeyError: 'x'"),
    ],
)
def test_damage_is_found(whole: Run, tmp_path: Path, damage: Callable[[Path], None], expected: str) -> None:
    healthy = Whole(whole)
    copied = whole._replace(folder=shutil.copytree(whole.folder, tmp_path / "run"))
    assert not inspect(copied, healthy).problems
    (folder,) = (copied.folder / DUMP / "step1").iterdir()
    damage(folder)
    assert any(expected in problem for problem in inspect(copied, healthy).problems)


def test_another_exit_status_is_found(whole: Run) -> None:
    healthy = Whole(whole)
    found = inspect(whole._replace(plan=Plan(DYNAMIC, "exit"), status=1), healthy, whole._replace(status=7))
    assert found.problems == ["ends with 1 '', without recording 7 ''"]
    assert "hangs" in inspect(whole._replace(status=-14), healthy).problems
