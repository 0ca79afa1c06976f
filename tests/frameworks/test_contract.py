"""What every framework promises to those who record with it: one training, with each of them, says the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from forked import run_forked
from repository import ROOT

from msprobe_ms.arrays.statistics import statistics
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.writer import ERROR_LOG

TRAINING = ROOT / "tests" / "make" / "contract_training.py"
#: On the path, ``torch`` is PyTorch's interface on MindSpore: mindtorch, which stands for MSAdapter.
ON_MINDSPORE = ROOT / "tests" / "make" / "on_mindspore"
LEVELS = ("L0", "L1", "mix")
WAYS = ("value_and_grad", "grad", "backward")
RUNS = [
    ("mindspore", "value_and_grad"), ("mindspore", "grad"), ("pytorch", "backward"),
    *(("msadapter", way) for way in WAYS),
]  # fmt: skip

LOSS = "loss.0.debug"
#: What the net's modules and its loss leave at L0, in order.
MODULES = [
    "first.Linear.forward.0", "shared.Linear.forward.0", "shared.Linear.forward.1", "gate.inner.Linear.forward.0",
    "gate.Gate.forward.0", "last.Linear.forward.0", "Net.forward.0", LOSS,
    "Net.parameters_grad.0", "last.Linear.backward.0", "last.Linear.parameters_grad.0", "gate.inner.Linear.backward.0",
    "gate.Gate.backward.0", "gate.inner.Linear.parameters_grad.0", "shared.Linear.backward.1",
    "shared.Linear.backward.0", "shared.Linear.parameters_grad.0", "first.Linear.backward.0", "Net.backward.0",
    "first.Linear.parameters_grad.0",
]  # fmt: skip


class Run(NamedTuple):
    """A training with one framework, its dumps, and what it said."""

    framework: str
    way: str
    folder: Path

    def dump(self, level: str) -> Dump:
        (folder,) = (self.folder / level / "step0").iterdir()
        log = folder / ERROR_LOG
        assert not log.exists(), log.read_text()
        return read_dump(folder)

    def entry(self, dump: Dump, module: str) -> Entry:
        """The entry of a module that is named as PyTorch names it."""
        prefix = "Cell." if self.framework == "mindspore" else "Module."
        return dump.entries[self.named(f"{prefix}{module}")]

    def named(self, module: str) -> str:
        return module.replace(".Linear.", ".Dense.") if self.framework == "mindspore" else module

    @property
    def said(self) -> dict[str, Any]:
        return json.loads((self.folder / "said.json").read_text())

    @property
    def steps(self) -> dict[str, np.ndarray]:
        """The batch, and loss and gradients of each step: ``mix.2``."""
        return dict(np.load(self.folder / "steps.npz"))


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Run]:
    @cache
    def train(framework: str, way: str) -> Run:
        if framework == "msadapter" and find_spec("mindtorch") is None:
            pytest.skip("mindnlp is not installed: pip install --no-deps mindnlp==0.5.1")
        folder = tmp_path_factory.mktemp(f"{framework}_{way}")
        places = [str(ON_MINDSPORE)] * (framework == "msadapter") + [str(ROOT)]
        server = "torch" if framework == "pytorch" else "mindspore"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
        done = run_forked(TRAINING, framework, way, folder, framework=server, cwd=folder, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return Run(framework, way, folder)

    return train


@pytest.fixture(scope="module", params=RUNS, ids="-".join)
def run(request: pytest.FixtureRequest, train: Callable[[str, str], Run]) -> Run:
    return train(*request.param)


def arrays(dump: Dump, entry: Entry) -> dict[tuple[str, ...], np.ndarray]:
    """Every tensor of an entry, as its file has it."""
    return {(item.state, *item.path): dump.tensors.load(item) for item in entry.items if item.kind == "tensor"}


# -- entries -----------------------------------------------------------------------------------------------------------


def test_every_module_call_has_its_entries_in_order(run: Run) -> None:
    dump = run.dump("L0")
    assert [name if name == LOSS else name.partition(".")[2] for name in dump.entries] == [
        run.named(module) for module in MODULES
    ]
    framework = "mindtorch" if run.framework == "msadapter" else run.framework
    assert (dump.framework, dump.level, dump.task) == (framework, "L0", "tensor")


def test_mix_is_modules_and_functions_each_below_its_module(run: Run) -> None:
    modules, functions, mix = (run.dump(level) for level in LEVELS)
    ours = [name for name in mix.entries if name in modules.entries]
    assert sorted(ours) == sorted(modules.entries)
    assert [name for name in mix.entries if name not in modules.entries] == [
        name for name in functions.entries if name != LOSS
    ]
    assert [name for name in ours if "forward" in name] == [name for name in modules.entries if "forward" in name]
    for way in ("forward", "backward"):
        gate = run.entry(mix, f"gate.Gate.{way}.0")
        net = run.entry(mix, f"Net.{way}.0")
        assert (gate.parent, net.parent) == (net.name, None)
        assert run.entry(mix, f"gate.inner.Linear.{way}.0").parent == gate.name
        inside = [name for name in functions.entries if mix.entries[name].parent == gate.name and way in name]
        assert [name.split(".")[1] for name in inside] == ["sigmoid", "__mul__"][:: 1 if way == "forward" else -1]
        for module in ("first", "shared", "gate.inner", "last"):
            entry = run.entry(mix, f"{module}.Linear.{way}.0")
            assert any(mix.entries[name].parent == entry.name for name in functions.entries), entry.name


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_the_loss_is_recorded_at_every_level(run: Run, level: str) -> None:
    dump = run.dump(level)
    assert [name for name in dump.entries if name.endswith(".debug")] == [LOSS]
    ((_, loss),) = arrays(dump, dump.entries[LOSS]).items()
    if run.way != "grad":  # which gives out gradients alone
        np.testing.assert_array_equal(loss, run.steps[f"{level}.0"])
    assert dump.entries[LOSS].parent is None


@pytest.mark.parametrize("level", [*LEVELS, "in_place"])
def test_figures_are_those_of_the_tensor_that_is_read_back(run: Run, level: str) -> None:
    dump = run.dump(level)
    seen = 0
    for item in (item for entry in dump.entries.values() for item in entry.items if item.kind == "tensor"):
        array = dump.tensors.load(item)
        assert (array.shape, array.dtype) == (item.shape, np.float32), item.name
        found = item.maximum, item.minimum, item.mean, item.norm
        np.testing.assert_allclose(found, statistics(array), rtol=1e-6, err_msg=item.name)
        wide = array.astype(np.float64)
        norm = np.linalg.norm(wide) if array.ndim else wide
        expected = wide.max(), wide.min(), wide.mean(), norm
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(wide).mean(), err_msg=item.name)
        seen += 1
    assert seen > (20 if level in LEVELS else 1)


def test_inputs_parameters_outputs_and_gradients_are_those_of_the_call(run: Run) -> None:
    dump, steps = run.dump("L0"), run.steps
    for module in (module for module in MODULES if ".Linear.forward." in module):
        forward = arrays(dump, run.entry(dump, module))
        backward = arrays(dump, run.entry(dump, module.replace("forward", "backward")))
        x, y, weight = forward["input", "0"], forward["output", "0"], forward["parameters", "weight"]
        expected = x @ weight.T + forward.get(("parameters", "bias"), 0)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5, err_msg=module)
        expected = backward["input", "0"] @ weight
        np.testing.assert_allclose(backward["output", "0"], expected, rtol=1e-5, atol=1e-5, err_msg=module)
    first = arrays(dump, run.entry(dump, "first.Linear.forward.0"))
    np.testing.assert_array_equal(first["input", "0"], steps["batch"])
    # What the user is given: the loss, unless by ``grad``, the gradient of the batch, those of the parameters.
    given = [steps[f"L0.{number}"] for number in range(sum(name.startswith("L0.") for name in steps))]
    of_batch, *of_parameters = given[run.way != "grad" :]
    of_first = arrays(dump, run.entry(dump, "first.Linear.backward.0"))
    np.testing.assert_array_equal(of_first["output", "0"], of_batch)
    modules = ("first.Linear", "shared.Linear", "gate.inner.Linear", "last.Linear", "Net")
    entries = [arrays(dump, run.entry(dump, f"{module}.parameters_grad.0")) for module in modules]
    recorded = [array for entry in entries for array in entry.values()]
    assert sorted(array.tobytes() for array in recorded) == sorted(array.tobytes() for array in of_parameters)


def test_the_model_itself_has_what_its_own_parameters_need(run: Run) -> None:
    dump, steps = run.dump("L0"), run.steps
    net, last = (arrays(dump, run.entry(dump, f"{module}.forward.0")) for module in ("Net", "last.Linear"))
    (scale,) = (array for (state, *_), array in net.items() if state == "parameters")
    np.testing.assert_array_equal(net["input", "0"], steps["batch"])
    np.testing.assert_array_equal(net["output", "0"], last["output", "0"] * scale)
    arriving = arrays(dump, run.entry(dump, "Net.backward.0"))
    (gradient,) = arrays(dump, run.entry(dump, "Net.parameters_grad.0")).values()
    expected = (arriving["input", "0"] * last["output", "0"]).sum(axis=0)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)


def test_values_are_those_of_pytorch(run: Run, train: Callable[[str, str], Run]) -> None:
    """The same entries, parents and places as well, where the interface is PyTorch's."""
    reference = train("pytorch", "backward")
    for level in LEVELS if run.framework == "msadapter" else ("L0",):
        dump, other = run.dump(level), reference.dump(level)
        if run.framework == "msadapter":
            assert list(dump.entries) == list(other.entries)
            assert [entry.parent for entry in dump.entries.values()] == [each.parent for each in other.entries.values()]
        for entry, counterpart in zip(dump.entries.values(), other.entries.values(), strict=True):
            mine, theirs = arrays(dump, entry), arrays(other, counterpart)
            assert mine.keys() == theirs.keys() and mine, entry.name
            for place, array in mine.items():
                np.testing.assert_allclose(array, theirs[place], rtol=2e-5, atol=2e-5, err_msg=f"{entry.name} {place}")


def test_compare_lays_dumps_of_one_interface_side_by_side_without_a_mapping(
    train: Callable[[str, str], Run], tmp_path: Path
) -> None:
    runs = train("msadapter", "value_and_grad"), train("pytorch", "backward")
    target, golden = (run.folder / "mix" / "step0" for run in runs)
    arguments = ("-m", "msprobe_ms", "compare", "-tp", target, "-gp", golden, "-o", tmp_path, "--exit-code")
    done = run_forked(*arguments, framework="torch", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "100 % of calls\n" in done.stdout and "without a counterpart" not in done.stdout
    assert "CONSISTENT" in done.stdout


def test_what_is_written_in_place_was_read_before(run: Run) -> None:
    dump = run.dump("in_place")
    (entry,) = dump.entries.values()
    assert entry.name == "Tensor.__setitem__.0.forward"
    found, doubled = arrays(dump, entry), run.steps["batch"] * 2
    np.testing.assert_array_equal(found["input", "0"], doubled)
    doubled[0] = 3
    np.testing.assert_array_equal(found["output", "0"], doubled)


# -- the training ------------------------------------------------------------------------------------------------------


def test_training_does_not_notice(run: Run) -> None:
    steps = run.steps
    count = sum(name.startswith("before.") for name in steps)
    assert count >= 8
    for level in (*LEVELS, "after"):
        for number in range(count):
            expected, found = steps[f"before.{number}"], steps[f"{level}.{number}"]
            assert expected.any() and found.tobytes() == expected.tobytes(), (level, number)


def test_nothing_is_left_behind(run: Run) -> None:
    assert all(run.said[level] for level in LEVELS), "while recording something is in place"
    assert run.said["changed"] == []


def test_seeds_repeat_what_is_drawn(run: Run) -> None:
    first, second = run.said["drawn"]
    if run.framework == "msadapter":  # mindtorch has a generator of its own, which no seed of MindSpore's reaches
        del first["framework"], second["framework"]
    assert first == second


def test_dropout_is_off_on_request(run: Run) -> None:
    np.testing.assert_array_equal(np.float32(run.said["dropout"]), run.steps["batch"])
