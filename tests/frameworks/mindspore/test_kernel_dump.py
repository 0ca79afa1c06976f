"""Level L2 in compiled graphs, on CPU: the framework's own kernel dump, begun, paused and indexed step by step."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nets_mindspore as nets
import numpy as np
import pytest
from forked import run_forked
from kernel_dumps import lay_out
from processes import environment
from recording import step_folder, write_config

from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.config import load_config
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.recording.graphs.kernel_config import NOWHERE, Environment
from msprobe_ms.recording.graphs.kernel_step import KernelStep
from msprobe_ms.recording.progress import Status
from msprobe_ms.recording.selection.unused_settings import UnusedSettings
from msprobe_ms.support.errors import UsageError

SCRIPT = Path(__file__).with_name("compiled_steps.py")
FIGURES = ("Max", "Min", "Mean", "Norm")


class Run:
    """What a scenario printed last, its log, and its dump."""

    def __init__(self, folder: Path, scenario: str, keys: Any = None, *, jit_level: str = "O0", **variables: str):
        arguments = scenario, folder, json.dumps(keys), jit_level
        ended = run_forked(SCRIPT, *arguments, framework="mindspore", env={**environment(), **variables})
        self.folder, self.dump, self.returncode = folder, folder / "dump", ended.returncode
        self.log = "\n".join(line for line in ended.stderr.splitlines() if "[WARNING] ME" not in line)
        lines = ended.stdout.splitlines()
        self.printed = json.loads(lines[-1]) if lines and ended.returncode == 0 else None

    def raw(self, step: int, rank: int = 0) -> list[Path]:
        return sorted(self.dump.glob(f"rank_{rank}/Net/*/{step}/*"))

    def steps(self) -> list[str]:
        return sorted(path.name for path in self.dump.glob("step*"))

    def index(self, step: int) -> dict[str, Any]:
        return json.loads((step_folder(self.dump, step) / "dump.json").read_text())

    @property
    def configuration(self) -> dict[str, Any]:
        (file,) = self.dump.glob("*.json")
        return json.loads(file.read_text())["common_dump_settings"]


def leaves(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value] if "shape" in value else [leaf for member in value.values() for leaf in leaves(member)]
    return [leaf for member in value for leaf in leaves(member)] if isinstance(value, list) else []


def figures(array: np.ndarray) -> list[float]:
    """Max, Min, Mean, Norm; all four of one number are that number."""
    wide = array.astype(np.float64)
    norm = np.linalg.norm(wide) if wide.ndim else wide
    return [float(figure) for figure in (wide.max(), wide.min(), wide.mean(), norm)]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    def start(scenario: str, keys: Any = None, **more: str) -> Run:
        ended = Run(tmp_path, scenario, keys, **more)
        assert ended.returncode == 0, ended.log
        return ended

    return start


@pytest.fixture(scope="module")
def every_net(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("nets"), "every_net", {"task": "tensor"})


def test_losses_and_gradients_are_those_without_a_dump(every_net: Run, tmp_path: Path) -> None:
    assert every_net.returncode == 0, every_net.log
    assert set(every_net.printed) == {*nets.NETS, "faulty"}
    bare = Run(tmp_path, "every_net").printed
    assert bare == {name: every_net.printed[name] for name in nets.NETS}
    assert not list(tmp_path.iterdir())


def test_every_combination_of_compiled_graphs_is_made_or_refused(run: Callable[..., Run]) -> None:
    ended = run("every_way")
    found = ended.printed
    made = {combination for combination, said in found.items() if said == "made"}
    assert made == {
        f"{kind} L2 {task}" for kind in ("O0", "O1") for task in ("statistics", "tensor", "exception_dump")
    } | {f"O2 L2 {task}" for task in ("statistics", "tensor", "overflow_check", "exception_dump")} | {
        f"{kind} L0 {task}" for kind in ("O0", "O1", "O2") for task in ("statistics", "tensor", "structure")
    }
    file = ended.folder / "refused" / "kernel_kbyk_dump.json"  # a regular expression of Python's alone
    expected = f"PrecisionDebugger: MindSpore does not accept {file}: Invalid special open parenthesis."
    assert found["refused"] == expected and not file.exists()
    dynamic = "dynamic graphs: mindspore.set_context(mode=mindspore.PYNATIVE_MODE)"
    assert found["O2 mix tensor"] == (
        "PrecisionDebugger: level mix with task tensor does not record compiled graphs (GRAPH_MODE, jit_level O2); use "
        "level L0 (statistics, tensor, structure), or level L2 (statistics, tensor, overflow_check, exception_dump), "
        f"or level debug (statistics, tensor), or {dynamic}"
    )
    assert found["O1 L2 overflow_check"] == (
        "PrecisionDebugger: level L2 with task overflow_check does not record compiled graphs (GRAPH_MODE, jit_level "
        "O1); use level L0 (statistics, tensor, structure), or level L2 (statistics, tensor, exception_dump), or level "
        f"debug (statistics, tensor), or {dynamic}"
    )


@pytest.mark.parametrize("number", range(len(nets.NETS)), ids=nets.NETS)
def test_every_file_is_in_the_index_once_with_numpys_figures(every_net: Run, number: int) -> None:
    index = every_net.index(number)
    root = Path(index["dump_data_dir"])
    assert root == every_net.dump / "rank_0" / "Net"
    found = [(leaf["data_name"], leaf) for leaf in leaves(index["data"])]
    names = [name for name, _ in found]
    assert sorted(names) == [str(path.relative_to(root)) for path in every_net.raw(number)]
    assert len(set(names)) == len(names) > 50
    for name, leaf in found:
        array = np.load(root / name, allow_pickle=False)
        assert list(array.shape) == leaf["shape"]
        if array.dtype.kind == "f":
            assert [leaf[figure] for figure in FIGURES] == pytest.approx(figures(array), rel=1e-5, abs=1e-6), name


def test_kernels_belong_to_the_cells_of_the_model(every_net: Run) -> None:
    expected = {
        "two_linear": {
            "Kernel.MatMul.0.forward": "Cell.fc1.Dense.forward.0",
            "Kernel.ReLU.0.forward": "Cell.relu.ReLU.forward.0",
            "Kernel.MatMul.0.backward": "Cell.fc2.Dense.backward.0",
            "Kernel.BiasAddGrad.1.backward": "Cell.fc1.Dense.backward.0",
        },
        "residual": {"Kernel.MatMul.0.forward": "Cell.head.Dense.forward.0"},
        "encoder": {"Kernel.LayerNorm.2.forward": "Cell.norm.LayerNorm.forward.0"},
    }
    for name, kernels in expected.items():
        folder = step_folder(every_net.dump, nets.NETS.index(name))
        parents = json.loads((folder / "construct.json").read_text())
        assert {kernel: parents[kernel] for kernel in kernels} == kernels


def test_compare_names_the_kernel_and_the_cell_of_a_planted_fault(every_net: Run) -> None:
    good, bad = (read_dump(step_folder(every_net.dump, nets.NETS.index("encoder") + more)) for more in (0, 1))
    origins = compare_dumps(bad, good, Options()).origins
    # The kernel's own argument differs, its tensors agree.
    assert [origin.target for origin in origins[:1]] == ["Kernel.LayerNorm.1.forward.input.5"]
    assert "Cell.layers.0.norm2.LayerNorm.forward.0" in origins[0].details[0]
    assert not compare_dumps(good, good, Options()).origins


def test_statistics_are_the_tensors_figures_and_no_tensor_stays(every_net: Run, run: Callable[..., Run]) -> None:
    reduced = run("every_net", {"nets": 3, "task": "statistics", "step": [0, 2], "extra_info": False})
    assert reduced.steps() == ["step0", "step2"]
    assert reduced.configuration["saved_data"] == "tensor"
    for step in (0, 2):
        (table,) = reduced.raw(step)
        assert table.name == "statistic.csv"
        with table.open(newline="") as file:
            rows = {tuple(row[:4] + row[5:7]): row[-4:] for row in list(csv.reader(file))[1:]}
        tensors = every_net.raw(step)
        assert len(rows) == len(tensors)
        for path in tensors:
            kind, name, task, stream, _, io, slot = path.name.split(".")[:7]
            array = np.load(path, allow_pickle=False)
            if array.dtype == np.float32:
                row = [float(text) for text in rows[kind, name, task, stream, io, slot]]
                assert row == pytest.approx(figures(array), rel=1e-5, abs=1e-6)
        index, whole = reduced.index(step), every_net.index(step)
        assert index["task"] == "statistics" and index["dump_data_dir"] is None
        assert list(index["data"]) == list(whole["data"])
        for leaf, other in zip(leaves(index["data"]), leaves(whole["data"]), strict=True):
            assert leaf == {key: value for key, value in other.items() if key != "data_name"}
        assert [path.name for path in step_folder(reduced.dump, step).iterdir()] == ["dump.json"]


def test_only_what_runs_between_start_and_stop_of_selected_steps_is_written(run: Callable[..., Run]) -> None:
    bare = run("training")
    some = run("training", {"task": "tensor", "step": [1, 3]}, MS_ACL_DUMP_CFG_PATH="/mine")
    assert some.printed["losses"] == bare.printed["losses"]
    assert some.steps() == ["step1", "step3"]
    assert sorted(path.name for path in some.dump.glob("rank_0/Net/*/*")) == ["1", "1", "3", "3"]  # of two graphs
    assert some.configuration["iteration"] == "1|3"
    kernels = some.index(1)["data"]
    assert "Kernel.SGD.3.forward" in kernels and "Kernel.SGD.4.forward" not in kernels
    # Compiled in a step that was not selected.
    parents = json.loads((step_folder(some.dump, 1) / "construct.json").read_text())
    assert parents["Kernel.MatMul.1.forward"] == "Cell.fc2.Dense.forward.0"
    # Variables are set while recording, and put back.
    file = str(some.dump / "kernel_kbyk_dump.json")
    assert some.printed["variables"] == [[None, "/mine"], [file, None], [None, "/mine"]]


def test_every_step_without_a_selection(run: Callable[..., Run]) -> None:
    every = run("training", {"task": "statistics"})
    assert every.steps() == [f"step{number}" for number in range(5)]
    assert sorted(path.name for path in every.dump.glob("rank_0/Net/*/*")) == sorted("0123401234")
    assert every.configuration["iteration"] == f"0-{NOWHERE - 1}"


def test_whole_graphs_hand_the_file_to_the_device_too(run: Callable[..., Run]) -> None:
    ended = run("training", {"task": "tensor", "step": [0], "file_format": "bin"}, jit_level="O2")
    file = str(ended.dump / "kernel_graph_dump.json")
    assert ended.printed["variables"] == [[None, None], [file, file], [None, None]]
    assert ended.configuration["op_debug_mode"] == 0 and ended.configuration["file_format"] == "bin"
    assert "no effect on kernels here: file_format" in ended.log
    assert ended.steps() == ["step0"]


def test_named_kernels_are_not_handed_to_the_device(run: Callable[..., Run]) -> None:
    ended = run("training", {"task": "tensor", "step": [0], "list": ["MatMul"]}, jit_level="O2")
    assert ended.printed["variables"][1] == [str(ended.dump / "kernel_graph_dump.json"), None]
    assert all(path.name.startswith(("MatMul.", "Parameter.")) for path in ended.raw(0))


def test_a_users_own_dump_is_left_alone_and_said(run: Callable[..., Run], tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.json"
    settings = {
        "dump_mode": 1, "path": str(tmp_path / "theirs"), "net_name": "Theirs", "iteration": "all",
        "saved_data": "tensor", "input_output": 2, "kernels": ["ReLU"], "support_device": [0],
    }  # fmt: skip
    end_to_end = {"enable": True, "trans_flag": True}
    theirs.write_text(json.dumps({"common_dump_settings": settings, "e2e_dump_settings": end_to_end}))
    ended = run("training", {"task": "tensor"}, MINDSPORE_DUMP_CONFIG=str(theirs))
    assert ended.printed["variables"] == [[str(theirs), None]] * 3
    assert list((tmp_path / "theirs").glob("rank_0/Theirs/*/*/ReLU*"))
    assert not ended.dump.exists()
    assert (
        f"MINDSPORE_DUMP_CONFIG is set to {theirs}: MindSpore dumps what that file says, and nothing is recorded here. "
        "Take it out of the environment to have kernels recorded"
    ) in ended.log


def test_a_graph_that_ran_before_is_named_as_the_reason(run: Callable[..., Run]) -> None:
    ended = run("after_a_graph", {"task": "tensor"})
    assert not ended.raw(0)
    assert (
        "nothing was recorded: no kernel of a compiled graph ran between start and stop, or MindSpore had run a graph "
        "before PrecisionDebugger was constructed: it reads one dump configuration, at its first graph"
    ) in ended.log


@pytest.mark.parametrize(
    ("keys", "types"),
    [
        ({"list": ["MatMul"]}, {"MatMul"}),
        ({"data_mode": ["output"], "list": ["Default/fc1-Dense/BiasAdd-op0", "ReLU"]}, {"BiasAdd", "ReLU"}),
        ({"data_mode": ["input"], "list": ["name-regex(.*fc2.*)"]}, {"MatMul", "BiasAdd"}),
    ],
)
def test_list_and_data_mode_select_and_starts_of_a_step_add_up(
    run: Callable[..., Run], keys: dict[str, Any], types: set[str]
) -> None:
    ended = run("many_starts", {"task": "tensor", **keys})
    assert ended.steps() == ["step7"]
    names = [path.name.split(".") for path in ended.raw(7)]
    kernels = [name for name in names if name[0] != "Parameter"]
    assert {name[0] for name in kernels} == types
    assert {name[5] for name in kernels} <= {"input", "output"} & set(keys.get("data_mode", ["input", "output"]))
    index = ended.index(7)["data"]
    base = sorted(types)[0]
    each = 2 if types == {"MatMul"} else 1
    assert sum(name.startswith(f"Kernel.{base}.") for name in index) == 2 * each  # both windows, nothing between


def test_iterations_are_steps_after_one_start(run: Callable[..., Run], tmp_path: Path) -> None:
    """Where `step` is never called; a step has the kernels of both graphs once."""
    ended = run("one_start", {"task": "tensor", "step": [1, 3]})
    assert ended.steps() == ["step1", "step3"]
    assert sorted({path.name for path in ended.dump.glob("rank_0/Net/*/*")}) == ["1", "3"]
    scale = {step: leaves(ended.index(step)["data"]["Kernel.MatMul.0.forward"]["input_args"])[0] for step in (1, 3)}
    assert scale[3]["Max"] == pytest.approx(2 * scale[1]["Max"], rel=1e-6)
    for step in (1, 3):
        kernels = list(ended.index(step)["data"])
        assert "Kernel.MatMul.1.forward" in kernels and "Kernel.MatMul.2.forward" not in kernels
        assert len([name for name in kernels if name.startswith("Kernel.SGD.")]) == 4
    assert ended.printed == Run(tmp_path / "bare", "one_start").printed


def test_dynamic_and_compiled_steps_in_one_job(run: Callable[..., Run]) -> None:
    ended = run("switching", {"task": "tensor"})
    assert "start: the execution mode changed in the middle of step 1; call step() before start()" in ended.log
    dynamic, compiled, again = (ended.index(step)["data"] for step in range(3))
    kernels = [name for name in compiled if name.startswith("Kernel.")]
    assert kernels == list(dynamic) == list(again)
    for name in kernels:
        computed = [[leaf[key] for key in FIGURES] for leaf in leaves(compiled[name]["output"])]
        assert computed == [[leaf[key] for key in FIGURES] for leaf in leaves(dynamic[name]["output"])]


def test_record_reads_back_compiled_steps_and_leaves_nothing_running(run: Callable[..., Run]) -> None:
    ended = run("with_block")
    (first, same), (second, same_again) = ended.printed
    assert first == second and same and same_again
    assert sorted(path.name for path in ended.dump.glob("rank_0/Net/*/*")) == ["0", "1"]


@pytest.mark.parametrize("sink", [False, True])
def test_the_callback_of_model(run: Callable[..., Run], sink: bool) -> None:
    ended = run("of_model", {"task": "tensor", "step": [1, 2], "sink": sink})
    assert ended.steps() == ["step1", "step2"]
    for step in (1, 2):
        assert {"Kernel.MatMul.1.backward", "Kernel.SGD.0.forward"} <= set(ended.index(step)["data"])


def test_finished_steps_are_whole_when_the_process_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "endless", str(tmp_path), json.dumps({"task": "tensor"})]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        finished = [int(next(process.stdout)) for _ in range(4)]
        process.send_signal(signal.SIGKILL)
        finished += [int(line) for line in process.stdout if line.endswith(b"\n")]
    assert process.returncode == -signal.SIGKILL
    for step in finished:
        folder = step_folder(tmp_path / "dump", step)
        dump = read_dump(folder)
        assert {"Kernel.MatMul.0.forward", "Kernel.MatMul.0.backward", "Kernel.SGD.3.forward"} <= set(dump.entries)
        items = [item for entry in dump.entries.values() for item in entry.items if item.kind == "tensor"]
        assert all(item.data_name is not None and dump.tensors.load(item).shape == item.shape for item in items)
        assert {path.name for path in folder.iterdir()} == {"dump.json", "stack.json", "construct.json"}
    run_forked("-m", "msprobe_ms", "recover", tmp_path / "dump", framework="mindspore", env=environment())
    for step in finished:
        step_folder(tmp_path / "dump", step)  # still one: what has an index is not indexed again


def test_what_ran_before_an_exception_is_indexed_when_the_process_ends(tmp_path: Path) -> None:
    ended = Run(tmp_path, "raising", {"task": "tensor"})
    assert ended.returncode == 1 and "positive definite" in ended.log
    assert "Kernel.BiasAdd.1.forward" in ended.index(0)["data"]


def test_a_forked_child_writes_no_index(run: Callable[..., Run]) -> None:
    ended = run("child", {"task": "tensor"})
    assert ended.printed == []
    assert "Kernel.BiasAdd.1.forward" in ended.index(0)["data"]


def test_an_earlier_dump_is_moved_aside_with_its_kernels(run: Callable[..., Run], tmp_path: Path) -> None:
    run("many_starts", {"task": "tensor"})
    before = [path.name for path in sorted(tmp_path.glob("dump/rank_0/Net/0/7/*"))]
    ended = run("many_starts", {"task": "tensor"})
    aside = tmp_path / "dump" / "earlier1_rank_0" / "Net" / "0" / "7"
    assert [path.name for path in sorted(aside.iterdir())] == before
    assert f"{tmp_path}/dump/rank_0/Net/0/7 already held kernels; it is now {aside}" in ended.log
    names = {leaf["data_name"] for path in sorted((tmp_path / "dump" / "step7").glob("*/dump.json"))[-1:]
             for leaf in leaves(json.loads(path.read_text())["data"])}  # fmt: skip
    assert len(names) == len(before)


def test_raw_files_of_another_process_are_left_alone(run: Callable[..., Run], tmp_path: Path) -> None:
    """MindSpore would write into the folder that it writes in, too."""
    theirs = lay_out(tmp_path / "dump/rank_0/Net/0/7", {"MatMul.Default_op0.output.0": np.zeros(3, np.float32)})
    before = sorted((path, path.stat().st_size) for path in (tmp_path / "dump").rglob("*.npy"))
    other = os.open(tmp_path / "dump" / "rank_0", os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        ended = run("many_starts", {"task": "tensor"})
    finally:
        os.close(other)
    assert ended.log.count("MindSpore writes kernels of another process there") == 1, ended.log
    assert sorted((path, path.stat().st_size) for path in (tmp_path / "dump").rglob("*.npy")) == before, theirs
    assert ended.steps() == []


@pytest.mark.parametrize("task", ["overflow_check", "exception_dump"])
def test_checks_of_the_device_are_configured_and_said_to_find_nothing_on_cpu(
    run: Callable[..., Run], task: str
) -> None:
    ended = run("training", {"task": task}, jit_level="O2")
    name = "kernel_graph_overflow_check" if task == "overflow_check" else "kernel_graph_exception_check"
    assert [path.name for path in ended.dump.iterdir()] == [f"{name}.json"]
    assert ended.configuration["op_debug_mode"] == (3 if task == "overflow_check" else 4)
    assert ended.configuration["iteration"] == "all"
    assert ended.printed["variables"] == [[None, None]] * 3
    said = (
        f"task {task}: kernels on CPU report nothing, and nothing is recorded; {ended.dump / name}.json is for Ascend"
    )
    assert said in ended.log


def test_an_unselected_rank_has_nothing_configured(run: Callable[..., Run]) -> None:
    ended = run("training", {"task": "tensor", "rank": [3]})
    assert not ended.dump.exists()
    assert ended.printed["variables"] == [[None, None]] * 3


def test_variables_that_somebody_else_changes_meanwhile_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "1")
    monkeypatch.setenv("B", "1")
    monkeypatch.delenv("C", raising=False)
    environment = Environment()
    for name, value in (("A", "2"), ("B", "2"), ("C", "2"), ("A", None)):
        environment.set(name, value)
    assert "A" not in os.environ and os.environ["B"] == os.environ["C"] == "2"
    os.environ["B"] = "theirs"
    environment.put_back()
    environment.put_back()
    assert os.environ["A"] == "1" and os.environ["B"] == "theirs" and "C" not in os.environ


@pytest.fixture
def compiled() -> Iterator[Any]:
    """This process in GRAPH_MODE; no configuration of the kernel dump may come into force here."""
    import mindspore

    mindspore.set_context(mode=mindspore.GRAPH_MODE, jit_config={"jit_level": "O0"})
    yield mindspore
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, jit_config={"jit_level": "O0"})
    assert "MINDSPORE_DUMP_CONFIG" not in os.environ


def refused(path: Path, **keys: Any) -> str:
    with pytest.raises(UsageError) as caught:
        PrecisionDebugger(write_config(path, level="L2", **keys))
    return str(caught.value)


def test_paths_of_cells_are_mindspores_own_and_change_no_number(run: Callable[..., Run]) -> None:
    bare = run("recomputed")
    ended = run("recomputed", {"task": "tensor", "step": [0]})
    assert ended.printed == bare.printed
    names = {path.name.split(".")[1] for path in ended.raw(0)}
    assert {"recompute_Default_first-Net_fc1-Dense_MatMul-op0", "Default_rest-CellList_0-Dense_MatMul-op0"} <= names
    parents = json.loads((step_folder(ended.dump) / "construct.json").read_text())
    assert parents["Kernel.Tanh.0.forward"] == "Cell.rest.1.Tanh.forward.0"


def test_any_path_will_do(run: Callable[..., Run]) -> None:
    ended = run("odd_path")
    dump = ended.folder / "v1.0 é"
    assert "Kernel.BiasAdd.1.forward" in read_dump(step_folder(dump)).entries
    index = json.loads((step_folder(dump) / "dump.json").read_text())
    assert index["dump_data_dir"] == str(dump / "rank_0" / "Net")
    assert len(list(dump.glob("rank_0/Net/0/0/*.npy"))) == len(leaves(index["data"]))
    assert not os.path.lexists(ended.printed) and not Path(ended.printed).parent.exists()


def test_a_job_is_switched_on_while_it_runs(run: Callable[..., Run]) -> None:
    ended = run("switched", {"task": "tensor"})
    assert ended.steps() == ["step1"]
    assert sorted(path.name for path in ended.dump.glob("rank_0/Net/*/*")) == ["1", "2"]
    assert "kernels are selected as when the job began: MindSpore reads its configuration only once" in ended.log
    index = json.loads((step_folder(ended.folder / "other", 2) / "dump.json").read_text())
    assert index["dump_data_dir"] == str(ended.dump / "rank_0" / "Net")
    assert "Kernel.BiasAdd.1.forward" in index["data"]


class Idle:
    """A kernel dump that is asked for nothing."""

    version, on_cpu = "2.10.0", False

    def pause(self, nowhere: int) -> None:
        raise AssertionError("nothing was recording")


@pytest.mark.parametrize("task", ["overflow_check", "exception_dump"])
def test_where_the_device_found_nothing_wrong_there_is_no_step(dump_path: Path, task: str) -> None:
    from msprobe_ms.frameworks.mindspore.framework import MindSpore

    config = load_config(write_config(dump_path, level="L2", task=task))
    folder, data_folder = dump_path / "step0" / "rank0", dump_path / "rank_0" / "Net"
    folder.mkdir(parents=True)
    lay_out(data_folder / "0" / "0", {"Parameter.fc_weight.output.0": np.zeros(3, np.float32)})
    recording = KernelStep(config, MindSpore(), Idle(), folder, data_folder, 0, None, Status(config, 0))  # type: ignore[arg-type]
    recording.finish(UnusedSettings())
    assert not folder.exists() and not list(data_folder.rglob("*.npy"))

    folder.mkdir(parents=True)
    lay_out(data_folder / "0" / "0", {"MatMul.Default_fc-Dense_MatMul-op0.output.0": np.full(3, np.inf, np.float32)})
    recording.finish(UnusedSettings())
    assert list(read_dump(folder).entries) == ["Kernel.MatMul.0.forward"]


def test_what_only_dynamic_graphs_know_is_refused(compiled: Any, dump_path: Path) -> None:
    keys = {"scope": ["class:Dense"], "skip": 3, "tensor_list": ["fc"], "data_mode": ["forward", "input"]}
    only = "is not for kernels of compiled graphs"
    path = "Default/network-Net/fc1-Dense/MatMul-op0"
    names = f'names no kernel of a compiled graph; use its type ("MatMul"), its path ("{path}") or name-regex(…)'
    assert refused(dump_path, **keys, list=["class:MatMul", "Cell.*.fc", "MatMul"]).split("\n") == [
        f'PrecisionDebugger: scope {only}; "list" selects them; remove scope',
        f'PrecisionDebugger: skip {only}; "list" selects them; remove skip',
        f'PrecisionDebugger: tensor_list {only}; "list" selects them; remove tensor_list',
        f"PrecisionDebugger: data_mode [forward, input] {only}; use one of all, input, output",
        f'PrecisionDebugger: list: "class:MatMul" {names}',
        f'PrecisionDebugger: list: "Cell.*.fc" {names}',
    ]
    assert not dump_path.exists()


def test_whole_graphs_that_are_not_whole_are_refused(
    compiled: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_OP_RUN", "1")
    compiled.set_context(jit_config={"jit_level": "O2"})
    said = "PrecisionDebugger: GRAPH_OP_RUN=1 is set, with which graphs of jit_level O2 run kernel by kernel; unset it"
    for task in ("statistics", "tensor", "overflow_check"):
        assert refused(dump_path, task=task) == said
    assert not dump_path.exists()


def test_a_configuration_that_cannot_be_written_is_refused(compiled: Any, dump_path: Path) -> None:
    (dump_path / "kernel_kbyk_dump.json").mkdir(parents=True)
    said = refused(dump_path, task="tensor")
    assert (
        said == f"PrecisionDebugger: {dump_path / 'kernel_kbyk_dump.json'}: Is a directory; kernels cannot be recorded"
    )


def test_figures_of_kernels_are_refused_in_dynamic_graphs(ms: Any, dump_path: Path) -> None:
    assert refused(dump_path, summary_mode=["max", "nan count"]) == (
        "PrecisionDebugger: summary_mode [max, nan count] is for kernels of compiled graphs; "
        "dynamic graphs (PYNATIVE_MODE) know one of statistics, md5"
    )


def test_keys_for_compiled_graphs_are_said_to_be_idle_in_dynamic_ones(
    ms: Any, dump_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    PrecisionDebugger(write_config(dump_path, level="L2", device="device", precision="low")).retire()
    assert "these configuration keys have no effect in dynamic graphs: device, precision" in caplog.text


def test_a_window_of_tokens_is_refused_where_calls_are_not_seen(run: Callable[..., Run]) -> None:
    assert run("token_range", {"task": "tensor"}).printed == (
        "start: token_range counts calls of the model, which compiled graphs do not show; leave it"
    )
