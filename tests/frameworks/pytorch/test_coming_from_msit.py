"""The interface of msit's inference tool: the code of its page, and what its arguments select."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msit_llm
import pytest
import torch

from msprobe_ms import msit
from msprobe_ms.compat.msit import _HOOKED, _Hooked
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import ConfigError, UsageError

PAGE = Path(__file__).parents[3] / "docs" / "coming_from_msit.md"
CODE = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))


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
        ({"tensor_part": 3}, "tensor_part 3 is not accepted; use one of 0, 1, 2"),
        ({"mode": "layer"}, "mode ('layer',) is not accepted"),
        ({"dump_weight": 1}, "dump_weight 1 is not accepted; use one of True, False"),
        ({"dump_weight": True, "mode": "api"}, 'dump_weight is about modules; use mode "module"'),
        ({"layer_name": "root.a", "mode": "api"}, 'layer_name is about modules; use mode "module"'),
        ({"dump_weight": True, "dump_last_logits": True}, "each record one thing alone"),
        ({"device_id": "npu:0"}, "device_id 'npu:0' is not accepted; give a number"),
        ({"module_list": [torch.nn.Linear(1, 1)]}, "module_list: Linear("),
        ({"seed": "x"}, "seed 'x' is not accepted"),
    ],
)
def test_mistakes_are_told(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        msit.DumpConfig(**arguments)
    assert told in str(refused.value)


def test_what_only_ascend_has_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='records Ascend\'s ATB library, which is not there; use "pt"'):
        msit.set_dump_path(backend="acl")
    with pytest.raises(UsageError, match="give the name of a folder"):
        msit.set_dump_path(dump_tag="a/b")
    with pytest.raises(UsageError, match='use "dump_data"'):
        msit.register_hook(Model(), msit.DumpConfig(tmp_path), hook_type="overflow")
    with pytest.raises(UsageError, match="model is a str; give the network"):
        msit.register_hook("net", msit.DumpConfig(tmp_path))
    with pytest.raises(ConfigError, match="argument step"):
        msit.register_hook(Model(), msit.DumpConfig(tmp_path, token_range=["x"]))
