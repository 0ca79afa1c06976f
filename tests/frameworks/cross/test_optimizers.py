"""With ``"optimizer": true`` what optimizers make of each parameter is recorded, and compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from compare_parts import compared_steps
from mindspore import Tensor, nn, ops
from mindspore.experimental import optim
from recording import read_step, write_config
from thorough import thorough

from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.pytorch import PrecisionDebugger as TorchDebugger
from msprobe_ms.support.errors import ConfigError

RANDOM = np.random.default_rng(3)
SHAPES = ((16, 6), (16,), (16,), (16,), (5, 16), (5,))
WEIGHTS = [(RANDOM.standard_normal(shape) * 0.5).astype(np.float32) for shape in SHAPES]
BATCH, LABELS = RANDOM.standard_normal((8, 6)).astype(np.float32), np.arange(8) % 5
STEPS = 3

Make = Callable[[Any], Any]


def nothing(parameters: Any) -> None:
    """What a script does with gradients before the optimizer runs."""


def train_torch(folder: Path, make: Make, clip: Make = nothing, **keys: Any) -> tuple[Path, list[bytes]]:
    net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 5))
    with torch.no_grad():
        for parameter, weight in zip(net.parameters(), WEIGHTS, strict=True):
            parameter.copy_(torch.from_numpy(weight))
    optimizer = make(net.parameters())
    debugger = TorchDebugger(write_config(folder, **{"optimizer": True, **keys}))
    for _ in range(STEPS):
        debugger.start(net)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(torch.from_numpy(BATCH)), torch.from_numpy(LABELS)).backward()
        clip(net.parameters())
        optimizer.step()
        debugger.stop()
        debugger.step()
    return folder, [parameter.detach().numpy().tobytes() for parameter in net.parameters()]


def train_mindspore(folder: Path, make: Make, **keys: Any) -> tuple[Path, list[bytes]]:
    net = nn.SequentialCell(nn.Dense(6, 16), nn.ReLU(), nn.LayerNorm((16,), epsilon=1e-5), nn.Dense(16, 5))
    parameters = net.trainable_params()
    for parameter, weight in zip(parameters, WEIGHTS, strict=True):
        parameter.set_data(Tensor(weight))
    optimizer = make(parameters)

    def forward() -> Tensor:
        return ops.cross_entropy(net(Tensor(BATCH)), Tensor(LABELS, mindspore.int32))

    gradient = mindspore.value_and_grad(forward, None, parameters)
    debugger = PrecisionDebugger(write_config(folder, **{"optimizer": True, **keys}))
    for _ in range(STEPS):
        debugger.start(net)
        _, gradients = gradient()
        debugger.stop()
        optimizer(gradients)  # after stop, as many scripts have it
        debugger.step()
    return folder, [parameter.asnumpy().tobytes() for parameter in parameters]


def torch_adam(**changed: Any) -> Make:
    return lambda parameters: torch.optim.Adam(parameters, **{"lr": 1e-3, **changed})


def torch_sgd(**changed: Any) -> Make:
    return lambda parameters: torch.optim.SGD(parameters, **{"lr": 0.1, "momentum": 0.9, **changed})


HEALTHY: list[tuple[Make, Make]] = [
    (lambda parameters: nn.Adam(parameters, 1e-3), torch_adam()),
    (lambda parameters: optim.Adam(parameters, 1e-3), torch_adam()),
    (lambda parameters: nn.SGD(parameters, 0.1, momentum=0.9), torch_sgd()),
    (lambda parameters: nn.Momentum(parameters, 0.1, 0.9), torch_sgd()),
    (lambda parameters: optim.AdamW(parameters, 1e-3), lambda parameters: torch.optim.AdamW(parameters, 1e-3)),
]


@pytest.mark.parametrize(
    ("make", "golden", "level"),
    [
        *((*both, "mix") for both in (HEALTHY[0], HEALTHY[3])),
        (*HEALTHY[-1], "L0"),
        *(thorough((*both, "L0")) for both in HEALTHY[:-1]),
    ],
)
def test_healthy_trainings_of_two_frameworks_agree(
    ms: Any, tmp_path: Path, make: Make, golden: Make, level: str
) -> None:
    ours, _ = train_mindspore(tmp_path / "target", make, level=level)
    theirs, _ = train_torch(tmp_path / "golden", golden, level=level)
    results = compared_steps(ours, theirs)
    assert [found.verdict for found in results.found] == ["consistent"] * STEPS


@pytest.mark.parametrize(
    ("make", "golden", "said"),
    [
        (lambda parameters: nn.Adam(parameters, 2e-3), torch_adam(), "input.lr is 0.002"),
        (lambda parameters: nn.Adam(parameters, 1e-3, weight_decay=0.01), torch_adam(), "input.weight_decay is 0.01"),
        (lambda parameters: nn.Adam(parameters, 1e-3, beta2=0.99), torch_adam(), "input.betas.1 is 0.99"),
        (lambda parameters: nn.SGD(parameters, 0.1, momentum=0.8), torch_sgd(), "input.momentum is 0.8"),
        (lambda parameters: nn.Momentum(parameters, 0.1, 0.9, weight_decay=0.1), torch_sgd(), "weight_decay is 0.1"),
    ],
)
def test_another_setting_is_named_in_the_step_that_it_is_used_in(
    ms: Any, tmp_path: Path, make: Make, golden: Make, said: str
) -> None:
    ours, _ = train_mindspore(tmp_path / "target", make)
    theirs, _ = train_torch(tmp_path / "golden", golden)
    first = compared_steps(ours, theirs).found[0]
    assert first.verdict == "divergent"
    assert first.origins[0].target.startswith("Optimizer.0.weight.0.forward.input.")
    assert said in first.origins[0].reason and first.origins[0].kind == "update"


def test_another_rule_and_a_clipped_gradient_are_named(tmp_path: Path) -> None:
    class Wrong(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            result = super().step(closure)
            with torch.no_grad():
                self.param_groups[0]["params"][2].mul_(0.9)
            return result

    golden, _ = train_torch(tmp_path / "golden", torch_sgd())
    wrong, _ = train_torch(tmp_path / "wrong", lambda parameters: Wrong(parameters, lr=0.1, momentum=0.9))
    first = compared_steps(wrong, golden).found[0]
    assert first.origins[0].target == "Optimizer.2.weight.0.forward.output.0"
    assert first.origins[0].reason.startswith("the update differs by ")
    clipped, _ = train_torch(
        tmp_path / "clipped", torch_sgd(), lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 0.01)
    )
    first = compared_steps(clipped, golden).found[0]
    assert first.origins[0].target == "Optimizer.0.weight.0.forward.input.gradient"
    assert first.origins[0].reason.endswith(
        "though the gradient that backward gave agrees: look at clipping, unscaling, accumulation"
    )


def test_it_changes_no_bit_and_leaves_nothing_behind(ms: Any, tmp_path: Path) -> None:
    hooks = vars(__import__("sys").modules["torch.optim.optimizer"])
    before = dict(hooks["_global_optimizer_pre_hooks"]), vars(nn.Optimizer).get("__call__")
    for train, make in ((train_torch, torch_adam()), (train_mindspore, HEALTHY[0][0])):
        _, recorded = train(tmp_path / train.__name__, make)
        _, plain = train(tmp_path / f"{train.__name__}_off", make, optimizer=False)
        assert recorded == plain
        off = read_step(tmp_path / f"{train.__name__}_off").data
        assert {name for name in read_step(tmp_path / train.__name__).data if name not in off} == {
            f"Optimizer.{path}.0.forward" for path in PATHS[train]
        }
    assert before == (dict(hooks["_global_optimizer_pre_hooks"]), vars(nn.Optimizer).get("__call__"))


PATHS = {
    train_torch: ("0.weight", "0.bias", "2.weight", "2.bias", "3.weight", "3.bias"),
    train_mindspore: ("0.weight", "0.bias", "2.gamma", "2.beta", "3.weight", "3.bias"),
}


def test_what_is_recorded_of_an_update(tmp_path: Path) -> None:
    folder, _ = train_torch(tmp_path / "dump", torch_adam(weight_decay=0.1), task="tensor")
    first, second = read_step(folder, 0), read_step(folder, 1)
    given = second.data["Optimizer.3.bias.0.forward"]["input_kwargs"]
    assert {name: value["value"] for name, value in given.items() if "value" in value} == {
        "lr": 1e-3, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": False, "step": 1,
    }  # fmt: skip
    assert [beta["value"] for beta in given["betas"]] == [0.9, 0.999]
    assert set(given) == {"parameter", "gradient", "exp_avg", "exp_avg_sq", "lr", "weight_decay", "betas", "eps",
                          "amsgrad", "step"}  # fmt: skip
    (made,) = first.data["Optimizer.3.bias.0.forward"]["output"]
    assert made["Norm"] == given["parameter"]["Norm"]
    assert "Optimizer.3.bias.0.forward" in first.construct


def test_one_side_alone_that_recorded_updates_lacks_nothing(tmp_path: Path) -> None:
    for level in ("L0", "L1"):
        ours, _ = train_torch(tmp_path / f"with_{level}", torch_adam(), level=level)
        theirs, _ = train_torch(tmp_path / f"without_{level}", torch_adam(), level=level, optimizer=False)
        for target, golden in ((ours, theirs), (theirs, ours)):
            assert {found.verdict for found in compared_steps(target, golden).found} == {"consistent"}


def test_an_optimizer_that_raises_leaves_no_update(ms: Any, dump_path: Path) -> None:
    class Raises(nn.SGD):
        def construct(self, gradients: Any) -> Any:
            raise ZeroDivisionError("planted")

    with pytest.raises(ZeroDivisionError, match="planted"):
        train_mindspore(dump_path, lambda parameters: Raises(parameters, 0.1))
    PrecisionDebugger.step()
    assert not [name for name in read_step(dump_path).data if name.startswith("Optimizer")]


def test_without_a_network_there_are_no_updates_which_is_said(tmp_path: Path) -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    debugger = TorchDebugger(write_config(tmp_path / "dump", level="L1", optimizer=True))
    debugger.start()
    (weight * 2).sum().backward()
    optimizer.step()
    debugger.step()
    step = read_step(tmp_path / "dump", troubles=True)
    assert "loss.0.debug" in step.data and not [name for name in step.data if name.startswith("Optimizer")]
    assert "give it to start(model)" in (step.folder / "dump_error_info.log").read_text()


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"list": ["Optimizer.3.*"]}, ["Optimizer.3.weight.0.forward", "Optimizer.3.bias.0.forward"]),
        ({"list": ["Linear"]}, []),
        ({"scope": ["Module.0.Linear.forward.0", "Module.1.ReLU.forward.0"]}, []),
        ({"data_mode": ["backward"]}, []),
    ],
)
def test_updates_are_selected_as_calls_of_forward(dump_path: Path, keys: dict[str, Any], expected: list[str]) -> None:
    train_torch(dump_path, torch_sgd(), **keys)
    assert [name for name in read_step(dump_path).data if name.startswith("Optimizer")] == expected


@pytest.mark.parametrize("level", ["debug", "L2"])
def test_levels_without_updates_refuse_it(dump_path: Path, level: str) -> None:
    with pytest.raises(ConfigError, match=f"level {level} records no updates; use one of L0, L1, mix"):
        PrecisionDebugger(write_config(dump_path, level=level, optimizer=True))
