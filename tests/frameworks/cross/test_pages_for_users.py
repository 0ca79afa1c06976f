"""The pages that a new user meets first: their Python code and their commands run, and dump.json is what they show."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import nn
from repository import ROOT

import msprobe_ms.pytorch
from msprobe_ms import PrecisionDebugger
from msprobe_ms.cli.main import _parser, main
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump

PAGES = {name: (ROOT / name).read_text("utf-8") for name in ("README.md", "docs/loss_differs.md", "docs/cookbook.md")}
DUMP_JSON = (ROOT / "docs" / "dump_json.md").read_text("utf-8")
#: Commands that run a training or processes of their own, which have tests of their own; here their options are read.
STARTS_PROCESSES = ("run", "acc_check", "bisect", "prove")


def blocks(page: str, language: str) -> list[str]:
    """Return the code of a page, also that in lists, without what a comment before it says is not run here."""
    found = re.findall(rf"(<!-- not run here[^\n]*-->\n)?^( *)```{language}\n(.*?)^ *```", page, re.S | re.M)
    return [re.sub(rf"^{indent}", "", code, flags=re.M) for left_out, indent, code in found if not left_out]


class Layer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.fc = nn.LayerNorm((4,)), nn.Dense(4, 4)

    def construct(self, x: Any) -> Any:
        return x + self.fc(self.norm1(x))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.head = nn.CellList([Layer(), Layer()]), nn.Dense(4, 2)

    def construct(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Training:
    """What stands for the reader's own script, with the names that the pages use."""

    def __init__(self) -> None:
        generator = np.random.default_rng(1)
        x, y = (generator.standard_normal((4, width)).astype(np.float32) for width in (4, 2))
        net, loss = Net(), nn.MSELoss()

        def forward(x: Any, y: Any) -> Any:
            return loss(net(x), y)

        self.first = {each.name: each.asnumpy() for each in net.get_parameters()}
        torch_net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        dataset = mindspore.dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(2)
        self.names: dict[str, Any] = {
            "net": net,
            "dataset": dataset,
            "training_step": mindspore.value_and_grad(forward, None, net.trainable_params()),
            "optimizer": optimizer,
            "model": mindspore.train.Model(net, loss, optimizer),
            "x": mindspore.Tensor(x),
            "torch_net": torch_net,
            "torch_batches": [(torch.from_numpy(x), torch.from_numpy(y))],
            "torch_optimizer": torch.optim.SGD(torch_net.parameters(), 0.1),
            "loss_function": torch.nn.MSELoss(),
            "mindspore": mindspore,
            "PrecisionDebugger": PrecisionDebugger,
        }

    def run(self, code: str, title: str) -> None:
        """Run a block from the first weights on, in dynamic graphs, and leave nothing of it on."""
        net = self.names["net"]
        for each in net.get_parameters():
            each.set_data(mindspore.Tensor(self.first[each.name]))
        names = {**self.names}
        try:
            exec(compile(code, title, "exec"), names)
        finally:
            mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
            if "debugger.start" in code and "debugger.stop" not in code:
                names["debugger"].stop()

    def record(self, path: Path, scale: float = 1.0) -> None:
        """Record two steps, the first of two ranks, and the gradients of an update."""
        net, step, optimizer = (self.names[name] for name in ("net", "training_step", "optimizer"))
        for each in net.get_parameters():
            each.set_data(mindspore.Tensor(self.first[each.name] * (scale if each.name.endswith("gamma") else 1)))
        debugger = PrecisionDebugger(level="L0", dump_path=path, step=[0, 1])
        gradients = PrecisionDebugger(task="grad_probe", dump_path=path.with_name(f"{path.name}_gradients"))
        for batch in self.names["dataset"]:
            debugger.start(net, rank_id=0)
            _, grads = step(*batch)
            debugger.stop()
            debugger.step()
        gradients.monitor(optimizer)
        optimizer(grads)
        shutil.copytree(path / "step0" / "rank0", path / "step0" / "rank1")


@pytest.fixture(scope="module")
def training() -> Iterator[Training]:
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    deterministic = torch.are_deterministic_algorithms_enabled()
    yield Training()
    torch.use_deterministic_algorithms(deterministic)
    msprobe_ms.seed_all(1)
    msprobe_ms.pytorch.seed_all(1)


def entries(folder: Path, step: int = 0) -> list[str]:
    (file,) = (file for place, file in find_places(folder).items() if place.step == step)
    return list(read_dump(file).entries)


def test_the_code_of_each_page_runs(training: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, page in PAGES.items():
        folder = tmp_path / Path(name).stem
        folder.mkdir()
        monkeypatch.chdir(folder)
        for number, code in enumerate(blocks(page, "python")):
            training.run(code, f"{name}, block {number}")
    assert "Cell.layers.1.norm1.LayerNorm.backward.0" in entries(tmp_path / "README/dump")
    cookbook = tmp_path / "cookbook"
    cells = [name for name in entries(cookbook / "dump_graph", 1) if name.startswith("Cell.")]
    assert "Cell.head.Dense.parameters_grad.0" in cells
    assert set(cells) == {name for name in entries(cookbook / "dump_model") if name.startswith("Cell.")}
    assert "Module.2.Linear.parameters_grad.0" in entries(cookbook / "golden_pytorch")
    (saved,) = (cookbook / "dump_debug" / "step0").glob("*/debug.json")
    assert "hidden.0.debug" in json.loads(saved.read_text())["data"]


@pytest.fixture(scope="module")
def prepared(training: Training, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the commands are run in, with all files that they name."""
    folder = tmp_path_factory.mktemp("commands")
    training.record(folder / "golden")
    training.record(folder / "dump", scale=1.01)
    (folder / "dump_gradients").rename(folder / "gradients")
    np.savez(folder / "net.npz", **training.first)
    (folder / "net.npz").rename(folder / "net.ckpt")
    shutil.copy(folder / "net.ckpt", folder / "model.safetensors")
    (folder / "train.sh").write_text("python train.py --lr 0.1\n")
    (folder / "model.yaml").write_text("layers: 2\n")
    sides = {"npu_path": "dump/step0/rank0/dump.json", "bench_path": "golden/step0/rank0/dump.json"}
    (folder / "compare.json").write_text(json.dumps(sides))
    return folder


def test_every_command_of_the_pages(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], one_worker: None
) -> None:
    monkeypatch.chdir(prepared)
    lines = [line for page in PAGES.values() for block in blocks(page, "bash") for line in block.splitlines()]
    told: dict[tuple[str, ...], str] = {}
    for program, *arguments in (shlex.split(line, comments=True) for line in lines):
        if program == "msprobe":
            options = _parser().parse_args(arguments)
            output = arguments.index("-o") if "-o" in arguments else len(arguments)
            command = (*arguments[:output], *arguments[output + 2 :])
            once = command in told and options.command != "config_check"  # one file is written for each side
            if options.command not in STARTS_PROCESSES and not once:
                assert main(arguments) == 0, (arguments, capsys.readouterr().err)
                told[command] = capsys.readouterr().out
    assert len(told) > 12
    for command, said in told.items():
        if command[:5] == ("compare", "-tp", "dump/step0", "-gp", "golden/step0"):
            assert "layers.0.norm1" in said, command


def test_the_example_of_dump_json_is_what_is_recorded(
    training: Training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(DUMP_JSON, "python"))
    exec(compile(code, "docs/dump_json.md", "exec"), {"__name__": "page"})
    assert "6.3245" in capsys.readouterr().out
    (folder,) = (tmp_path / "dump" / "step0").iterdir()
    dump = json.loads((folder / "dump.json").read_text())
    example, parents, sites, _ = (json.loads(block) for block in blocks(DUMP_JSON, "json"))
    order = list(dump["data"])
    assert [order.index(name) for name in example["data"]] == sorted(order.index(name) for name in example["data"])
    for name, body in example.pop("data").items():
        assert rounded(dump["data"][name]) == rounded(body), name
    assert example.items() <= dump.items()
    assert parents.items() <= json.loads((folder / "construct.json").read_text()).items()
    recorded = json.loads((folder / "stack.json").read_text())
    assert [each[0] for each in sites.values()] == [recorded[number][0] for number in sites]


def rounded(value: Any) -> Any:
    """Figures to six digits: numpy and the extension in C may differ in the last."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def test_pages_for_users_name_no_tests() -> None:
    for name, page in {**PAGES, "docs/dump_json.md": DUMP_JSON}.items():
        assert not re.search(r"tests/|\btest_\w+", page), name
