"""The interface of msit's inference tool: the code of its page, and what its arguments select."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msit_llm
import numpy as np
import pytest
import torch
from forked import run_forked
from safetensors.numpy import save_file

from msprobe_ms import msit
from msprobe_ms.cli.main import main
from msprobe_ms.compat.msit import _HOOKED, _Hooked
from msprobe_ms.compat.msit_selection import module_pattern
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.patterns import matcher
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.recording.entry_points import every_python
from msprobe_ms.support.errors import ConfigError, UsageError
from msprobe_ms.support.log import logger

PAGE = Path(__file__).parents[3] / "docs" / "coming_from_msit.md"
TEXT = PAGE.read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
COMMANDS = "".join(re.findall(r"```bash\n(.*?)```", TEXT, re.DOTALL)).splitlines()


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.act = torch.nn.Linear(4, 4), torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.fc(x))


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Block(), Block()])
        self.lm_head = torch.nn.Linear(4, 7)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        for layer in self.layers:
            x = layer(x)
        return {"logits": self.lm_head(x)}


@torch.no_grad()
def generate(model: torch.nn.Module) -> None:
    for token in range(4):
        model(torch.full((1, 4), float(token)))


@pytest.fixture(autouse=True)
def _no_hooks_left() -> Iterator[None]:
    yield
    for calls, _ in _HOOKED._calls:
        calls.remove()
    _HOOKED.__dict__.update(_Hooked().__dict__)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which all code of the page has run."""
    folder = tmp_path_factory.mktemp("page")
    deterministic = torch.are_deterministic_algorithms_enabled()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(CODE, str(PAGE), "exec"), {"torch": torch, "model": Model(), "generate": generate})
        assert torch.initial_seed() == 2024
    torch.use_deterministic_algorithms(deterministic)
    return folder


def dumps(folder: Path) -> dict[int, Dump]:
    return {place.step or 0: read_dump(file) for place, file in sorted(find_places(folder).items(), key=str)}


def fields(dump: Dump) -> dict[str, list[str]]:
    return {name: sorted({item.state for item in entry.items}) for name, entry in dump.entries.items()}


BLOCKS = [
    [f"Module.layers.{n}.{part}.forward.0" for part in ("fc.Linear", "act.ReLU", "Block")] for n in range(2)
]  # fmt: skip


def test_the_code_of_the_page_records_what_it_says(page: Path) -> None:
    whole = dumps(page / "whole/msit_dump")
    assert list(whole) == [0]
    assert list(whole[0].entries) == [
        *BLOCKS[0],
        *BLOCKS[1],
        "Module.lm_head.Linear.forward.0",
        "Module.Model.forward.0",
    ]
    assert {tuple(each) for each in fields(whole[0]).values()} == {("input", "output")}
    (item,) = (each for each in whole[0].entries["Module.lm_head.Linear.forward.0"].items if each.state == "output")
    assert whole[0].tensors.load(item).shape == (1, 7)
    assert list(dumps(page / "first_layer/msit_dump")[0].entries) == BLOCKS[0]
    weights = fields(dumps(page / "weights/msit_dump")[0])
    assert weights == {name: ["parameters"] for name in (BLOCKS[0][0], BLOCKS[1][0], "Module.lm_head.Linear.forward.0")}
    logits = dumps(page / "logits/msit_dump")
    assert [fields(logits[step]) for step in range(3)] == [{"Module.Model.forward.0": ["output"]}] * 3
    linear = dumps(page / "linear/msit_dump")
    assert list(linear) == [0, 2]
    assert fields(linear[2]) == {name: ["output"] for name in weights}
    api = fields(dumps(page / "api/msit_dump")[0])
    assert list(api)[:2] == ["Functional.linear.0.forward", "Functional.relu.0.forward"]
    assert all(each == ["input"] for each in api.values())
    assert {"Functional.relu.1.forward", "Module.Model.forward.0"} < set(dumps(page / "both/msit_dump")[0].entries)


def test_each_dialogue_has_a_folder_and_its_own_tokens(page: Path) -> None:
    for dialogue in (0, 1):
        assert list(dumps(page / f"dialogs/dialog_{dialogue}")) == [0, 1]


#: What the commands of the page run, by a shell script.
INFER = """
import torch
from torch import nn
torch.manual_seed(0)
class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        return self.out(torch.softmax(self.qkv(x), -1))
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(4), SelfAttention()
    def forward(self, x):
        return x + self.attention(self.norm(x))
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.ModuleList([Layer() for _ in range(4)]), nn.Linear(4, 7)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
model = Model()
with torch.no_grad():
    for token in range(4):
        model(torch.full((1, 4), float(token)) if token < 3 else torch.full((1, 4), float("inf")))
"""
#: As each Python below a command begins, in a process in which the framework is imported already.
BEGIN = """
import os, runpy
from msprobe_ms.recording.entry_points.every_python import record_this_process
record_this_process(os.environ["MSPROBE_RUN"])
runpy.run_path("infer.py", run_name="__main__")
"""


class Forked:
    """Stands for a shell that runs ``python infer.py``; tests/process/test_every_python.py has a real one."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        assert command == ["sh", "-c", "bash run.sh"] and "startup" in env["PYTHONPATH"].split(os.pathsep)[0]
        self._done = run_forked("-c", BEGIN, framework="torch", env=env)
        assert self._done.returncode == 0, self._done.stderr

    def wait(self) -> int:
        return 7


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[int, str]]]:
    """The folder in which all commands of the page have run; and of each its exit status and what it printed."""
    folder = tmp_path_factory.mktemp("shell")
    golden = np.linspace(0, 1, 6, dtype=np.float32)
    np.save(folder / "golden.npy", golden)
    np.save(folder / "mine.npy", golden + 1)
    (folder / "metadata.json").write_text('{"data": {"0": ["golden.npy", "mine.npy"]}}')
    save_file({"weight": golden}, folder / "float.safetensors")
    save_file({"weight": golden + 1}, folder / "dequantized.safetensors")
    (folder / "op_mapping_file.json").write_text('{"Linear": "Linear"}')
    (folder / "mine.py").write_text("def foo(golden, mine):\n    return 0.5, 'half'\n")
    (folder / "infer.py").write_text(INFER)
    msit.register_hook(model := Model(), msit.DumpConfig(folder / "logits", token_range=[0, 1], dump_last_logits=True))
    generate(model)
    done, level = {}, logger.level
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(every_python, "subprocess", SimpleNamespace(Popen=Forked))
        for command in COMMANDS:
            patch.setenv("MSPROBE_LOG_LEVEL", "1")
            told = io.StringIO()
            with contextlib.redirect_stdout(told):
                status = main(shlex.split(command)[1:])
            logger.setLevel(level)
            done[command] = status, told.getvalue()
    return folder, done


def test_every_command_of_the_page_runs(shell: tuple[Path, dict[str, tuple[int, str]]]) -> None:
    folder, done = shell
    assert len(done) == len(COMMANDS) == 22
    for command, (status, told) in done.items():
        assert status == (7 if "--exec" in command else 0), (command, told)
    said = {command.split()[-1]: told for command, (_, told) in done.items()}
    assert said["overflow"].startswith("overflow: ") and "Functional.layer_norm.0.forward" in said["overflow"]
    assert said["report"].startswith("CONSISTENT") and said["token_report"].startswith("CONSISTENT")
    assert "1 of 1 parameters differ" in said["weights_report"] or "DIVERGENT" in said["weights_report"]
    assert said["file_report"].startswith("DIVERGENT: 0 of 1 pairs of files agree")
    for report, table in (
        ("report", "compare_result_*.csv"), ("layer_report", "compare_result_*.csv"),
        ("token_report", "compare_tokens_*.csv"), ("weights_report", "*.csv"), ("file_report", "msit_cmp_report_*.csv"),
        ("pair_report", "msit_cmp_report_*.csv"), ("other/report", "*.xlsx"), ("other/weights", "*.xlsx"),
        ("graph", "*.onnx"), ("other/graph", "*.onnx"),
    ):  # fmt: skip
        assert list((folder / report).glob(table)), report
    (table,) = (folder / "layer_report").glob("compare_result_*.csv")
    assert "foo" in table.read_text().splitlines()[0].split(",")


def test_the_options_of_llm_dump_select_what_they_say(shell: tuple[Path, dict[str, tuple[int, str]]]) -> None:
    folder, _ = shell

    def of(name: str) -> dict[int, Dump]:
        return dumps(folder / name / "msit_dump")

    whole = of("whole")
    assert list(whole) == [0] and whole[0].task == "tensor" and len(whole[0].entries) == 43
    assert (of("model")[0].task, of("graph")[0].task) == ("structure", "structure")
    layers = [f"Module.layers.{n}.Layer.forward.0" for n in range(4)]
    assert list(of("layers")[0].entries) == [*layers, "Module.head.Linear.forward.0"]
    assert list(of("second_token")) == [1]
    three = of("three_tokens")
    assert list(three) == [0, 1, 3] and {dump.task for dump in three.values()} == {"statistics"}
    assert {name.split(".")[2] for name in of("fourth")[0].entries if name.startswith("Module")} == {"3"}
    part = of("part")[0]
    assert layers[3] not in part.entries and "Module.layers.3.attention.SelfAttention.forward.0" in part.entries
    assert {item.state for entry in part.entries.values() for item in entry.items} == {"input", "parameters"}
    two = of("two")[0]
    assert {item.state for entry in two.entries.values() for item in entry.items} == {"output"}
    assert {name.split(".")[2] for name in two.entries if name.startswith("Module")} == {"2", "3"}
    attention = of("attention")[0]
    kinds = {"SelfAttention", "Linear", "linear", "softmax"}
    assert {
        entry.parsed.class_name or entry.parsed.name for entry in attention.entries.values() if entry.parsed
    } == kinds
    assert [step for step, dump in of("overflow").items() if dump.entries] == [3]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--type", "kernel"], "--type kernel: kernels are recorded of MindSpore: msprobe run --level L2"),
        (["--type", "tensor", "cpu_profiling"], "--type cpu_profiling: times are no matter of a dump; use torch.prof"),
        (["-tiling"], "-tiling: tiling is of Ascend's kernels"),
        (["-time", "0", "-stp", "1"], "-time 0 with -stp 1 leaves nothing"),
        (["-er", "1"], "-er '1' is not accepted; give pairs of first and last token"),
        (["-er", "3,1"], 'step[0]: "3-1" ends before it starts'),
        (["-ids", "a"], "-ids 'a' is not accepted; give places from 0 up"),
    ],
)
def test_options_that_cannot_be_are_told(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["llm", "dump", "--exec", "exit 1", "-o", str(tmp_path), *arguments]) == 2
    assert told in capsys.readouterr().err
    assert main(["llm", "errcheck", "--exec", "exit 1", "--exit"]) == 2 and main(["llm"]) == 2


def test_the_network_is_as_it_was_after_the_last_token(tmp_path: Path) -> None:
    model, x = Model(), torch.ones(1, 4)
    expected = model(x)["logits"]
    msit.register_hook(model, msit.DumpConfig(tmp_path, token_range=[0]))
    assert "__call__" in vars(Model)
    with pytest.raises(RuntimeError):
        model(torch.ones(1, 3))  # a call that raises is a token as well, and passes
    assert "__call__" not in vars(Model)
    assert torch.equal(model(x)["logits"], expected)
    other = Model()
    msit.register_hook(model, msit.DumpConfig(tmp_path / "again", token_range=[0, 1]))
    other(x)
    assert not (tmp_path / "again").exists()  # that was another object of its class
    model(x)
    assert list(dumps(tmp_path / "again/msit_dump")) == [0]


def test_a_mindspore_network(ms: Any, tmp_path: Path) -> None:
    net = ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.ReLU())
    msit.register_hook(net, msit.DumpConfig(tmp_path, token_range=[0, 1], dump_weight=True))
    for _ in range(3):
        net(ms.Tensor([[1.0, 2, 3, 4]], ms.float32))
    weights = {step: fields(dump) for step, dump in dumps(tmp_path / "msit_dump").items()}
    assert weights == {step: {"Cell.0.Dense.forward.0": ["parameters"]} for step in (0, 1)}


def test_the_import_name_gives_the_very_objects() -> None:
    assert all(getattr(msit_llm, name) is getattr(msit, name) for name in msit.__all__)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"dump_path": "a\0b"}, "DumpConfig: dump_path 'a\\x00b' is not accepted; use a path"),
        ({"dump_path": None}, "DumpConfig: dump_path None is not accepted; use a path"),
        ({"tensor_part": 3}, "tensor_part 3 is not accepted; use one of 0, 1, 2"),
        ({"mode": "layer"}, "mode ('layer',) is not accepted"),
        ({"dump_weight": 1}, "dump_weight 1 is not accepted; use one of True, False"),
        ({"dump_weight": True, "mode": "api"}, 'dump_weight is about modules; use mode "module"'),
        ({"layer_name": "root.a", "mode": "api"}, 'layer_name is about modules; use mode "module"'),
        ({"dump_weight": True, "dump_last_logits": True}, "each record one thing alone"),
        ({"device_id": "npu:0"}, "device_id 'npu:0' is not accepted; give a number"),
        ({"module_list": [torch.nn.Linear(1, 1)]}, "module_list: Linear("),
        ({"module_list": "Linear"}, "module_list: ['Linear'] is not accepted; give classes of modules"),
        ({"module_list": 5}, "module_list: [5] is not accepted; give classes of modules"),
        ({"mode": 5}, "mode 5 is not accepted"),
        ({"mode": ["module", ["api"]]}, "mode ['module', ['api']] is not accepted"),
        ({"tensor_part": torch.tensor(2)}, "tensor_part tensor(2) is not accepted"),
        ({"seed": "x"}, "seed 'x' is not accepted"),
    ],
)
def test_mistakes_are_told(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        msit.DumpConfig(**arguments)
    assert told in str(refused.value)


@pytest.mark.parametrize("tokens", [range(10**9), itertools.count()])
def test_more_tokens_than_can_be_are_refused_at_once(tokens: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="argument step: more than 1000000 numbers"):
        msit.register_hook(Model(), msit.DumpConfig(tmp_path, token_range=tokens))


def test_tokens_that_can_be_read_but_once(tmp_path: Path) -> None:
    model = Model()
    msit.register_hook(model, msit.DumpConfig(tmp_path, token_range=iter([1])))
    msit.set_dump_path(tmp_path / "moved")  # the configuration is read again
    for _ in range(3):
        model(torch.ones(1, 4))
    assert list(dumps(tmp_path / "moved/msit_dump")) == [1]


def test_any_number_of_gaps_in_a_path() -> None:
    """Tried one by one, the places of so many gaps would take years for a single name."""
    matches = matcher(module_pattern("root." + "*" * 40 + "layers.*.*.*.*.*.*.*.*.*.*.*.*.b*"))
    assert not matches("Module.layers" + ".a" * 60 + ".Linear.forward.0")
    assert matches("Module.layers" + ".a" * 60 + ".b.fc.Linear.forward.0")


def test_what_only_ascend_has_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='records Ascend\'s ATB library, which is not there; use "pt"'):
        msit.set_dump_path(backend="acl")
    with pytest.raises(UsageError, match=r"set_dump_path: dump_path b'x' is not accepted; use a path"):
        msit.set_dump_path(b"x")
    with pytest.raises(UsageError, match="give the name of a folder"):
        msit.set_dump_path(dump_tag="a/b")
    with pytest.raises(UsageError, match='use "dump_data"'):
        msit.register_hook(Model(), msit.DumpConfig(tmp_path), hook_type="overflow")
    with pytest.raises(UsageError, match="model is a str; give the network"):
        msit.register_hook("net", msit.DumpConfig(tmp_path))
    with pytest.raises(ConfigError, match="argument step"):
        msit.register_hook(Model(), msit.DumpConfig(tmp_path, token_range=["x"]))
