"""``seed_all``: the same random numbers in every run, and dropout off and on again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops
from recording import read_step, recording
from repository import PYTHONPATH

from msprobe_ms.mindspore import seed_all
from msprobe_ms.support.errors import UsageError

#: Shape of the input and a function to make the dropout; half of everything is dropped.
DROPOUTS: dict[str, tuple[tuple[int, ...], Callable[[], Callable[[Tensor], Tensor]]]] = {
    "nn.Dropout": ((40, 5), lambda: nn.Dropout(p=0.5)),
    "nn.Dropout1d": ((2, 30, 5), lambda: nn.Dropout1d(p=0.5)),
    "nn.Dropout2d": ((2, 30, 4, 4), lambda: nn.Dropout2d(p=0.5)),
    "nn.Dropout3d": ((2, 30, 4, 4, 4), lambda: nn.Dropout3d(p=0.5)),
    "ops.dropout": ((40, 5), lambda: lambda x: ops.dropout(x, p=0.5)),
    "ops.dropout1d": ((2, 30, 5), lambda: lambda x: ops.dropout1d(x, p=0.5)),
    "ops.dropout2d": ((2, 30, 4, 4), lambda: lambda x: ops.dropout2d(x, p=0.5)),
    "ops.dropout3d": ((2, 30, 4, 4, 4), lambda: lambda x: ops.dropout3d(x, p=0.5)),
    "ops.Dropout": ((40, 5), lambda: lambda x: ops.Dropout(keep_prob=0.5)(x)[0]),
}
#: Kernels of these exist on Ascend only; the identity needs none.
MINT_DROPOUTS: dict[str, tuple[tuple[int, ...], Callable[[], Callable[[Tensor], Tensor]]]] = {
    "mint.nn.Dropout": ((40, 5), lambda: mint.nn.Dropout(p=0.5)),
    "mint.nn.Dropout2d": ((2, 30, 4, 4), lambda: mint.nn.Dropout2d(p=0.5)),
    "mint.nn.functional.dropout": ((40, 5), lambda: lambda x: mint.nn.functional.dropout(x, 0.5)),
    "mint.nn.functional.dropout2d": ((2, 30, 4, 4), lambda: lambda x: mint.nn.functional.dropout2d(x, 0.5)),
}


@pytest.fixture(autouse=True)
def restored(ms: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    monkeypatch.setenv("HCCL_DETERMINISTIC", "false")
    yield
    seed_all(0)


def make(dropouts: Any, name: str) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    shape, factory = dropouts[name]
    dropout = factory()
    if isinstance(dropout, nn.Cell):
        dropout.set_train()
    return Tensor(np.random.standard_normal(shape).astype(np.float32)), dropout


def drops(dropout: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    return not np.array_equal(dropout(x).asnumpy(), x.asnumpy())


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_goes_and_comes_back_in_layers_made_before_and_after(name: str) -> None:
    seed_all(1)
    x, before = make(DROPOUTS, name)
    assert drops(before, x), "never unasked"
    seed_all(1, rm_dropout=True)
    seed_all(1, rm_dropout=True)
    _, after = make(DROPOUTS, name)
    assert not drops(before, x) and not drops(after, x)
    gradient = mindspore.grad(lambda x: (before(x) * 3).sum())(x)
    assert (gradient.asnumpy() == 3).all()
    seed_all(1)
    assert drops(before, x) and drops(after, x)


@pytest.mark.parametrize("name", MINT_DROPOUTS)
def test_dropout_of_mint_goes(name: str) -> None:
    x, before = make(MINT_DROPOUTS, name)
    seed_all(1, rm_dropout=True)
    _, after = make(MINT_DROPOUTS, name)
    assert not drops(before, x) and not drops(after, x)


def test_dropout_given_back_leaves_nothing_behind() -> None:
    from mindspore.ops import auto_generate
    from mindspore.ops.function import nn_func

    holders = (ops.Dropout, ops.Dropout2D, ops.Dropout3D, auto_generate, nn_func)
    was = [dict(vars(holder)) for holder in holders]
    seed_all(1, rm_dropout=True)
    assert [dict(vars(holder)) for holder in holders] != was
    seed_all(1)
    assert [dict(vars(holder)) for holder in holders] == was


def test_the_same_numbers_again() -> None:
    def draw() -> list[bytes]:
        layer = nn.Dropout(p=0.5).set_train()
        return [
            repr(random.random()).encode(),
            np.random.random(3).tobytes(),
            ops.randn(3).asnumpy().tobytes(),
            layer(Tensor(np.ones(100, np.float32))).asnumpy().tobytes(),
            nn.Dense(3, 3).weight.asnumpy().tobytes(),
        ]

    seed_all(7)
    first = draw()
    seed_all(7)
    assert draw() == first
    seed_all(8)
    assert all(new != old for new, old in zip(draw(), first, strict=True))


def test_environment_and_context() -> None:
    seed_all(5, mode=True)
    assert (os.environ["PYTHONHASHSEED"], os.environ["HCCL_DETERMINISTIC"]) == ("5", "true")
    assert mindspore.get_context("deterministic") == "ON"
    seed_all(5)
    assert os.environ["HCCL_DETERMINISTIC"] == "false"
    assert mindspore.get_context("deterministic") == "OFF"


@cache
def seeded_in_a_process(hash_seed: str) -> tuple[list[str], list[str]]:
    """What a script printed that seeds once, trains each of the five nets and asks a child for a hash; its errors.

    The second part of the errors is of seeding again and again. Weights and batches are random, and so is dropout
    before the loss.
    """
    code = """
import subprocess, sys
import mindspore, numpy as np, nets_mindspore as nets
from mindspore import Tensor, ops
from msprobe_ms.mindspore import seed_all
mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
mindspore.runtime.launch_blocking()
seed_all(5, mode=True)
for name in nets.NETS:
    net_class, batch = nets._BATCHES[name]
    net = net_class().set_train()
    x = batch(np.random.default_rng(np.random.randint(1000)))
    labels = Tensor(np.random.randint(0, 10, len(x)).astype(np.int32))
    optimizer = mindspore.nn.SGD(net.trainable_params(), 0.1)
    forward = lambda x: nets.cross_entropy(ops.dropout(net(x), 0.3), labels)
    step = mindspore.value_and_grad(forward, None, net.trainable_params())
    for _ in range(2):
        loss, gradients = step(Tensor(x))
        optimizer(gradients)
        print("loss", name, loss.asnumpy().tobytes().hex())
print(subprocess.run([sys.executable, "-c", "print(hash('a'))"], capture_output=True, text=True).stdout, end="")
print("-- again --", file=sys.stderr, flush=True)
for seed in (5, 6, 7):
    for mode in (True, True, False):
        seed_all(seed, mode=mode)
"""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": PYTHONPATH}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), done.stderr.split("-- again --")


@pytest.mark.parametrize("hash_seed", ["random", "5"])
def test_it_says_what_cannot_be_set_any_more(hash_seed: str) -> None:
    printed, (said, _) = seeded_in_a_process(hash_seed)
    expected = subprocess.run(
        [sys.executable, "-c", "print(hash('a'))"],
        env={**os.environ, "PYTHONHASHSEED": "5"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert printed[-1] == expected.stdout.strip()
    assert ("the order of strings in a Python set" in said) == (hash_seed == "random")


def test_seeding_again_and_again_says_nothing_new_and_mindspore_nothing_at_all() -> None:
    printed, said = seeded_in_a_process("random")
    assert "".join(said).count("the order of strings in a Python set") == 1
    assert "HCCL_DETERMINISTIC" not in "".join([*printed, *said])
    assert "set_deterministic" not in "".join([*printed, *said])


@pytest.mark.parametrize("arguments", [{"seed": -1}, {"seed": 2**32}, {"seed": 1.0}, {"seed": True}, {"mode": 1}])
def test_what_is_no_seed(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"seed_all: {next(iter(arguments))} .* is not accepted; give"):
        seed_all(**arguments)


def test_two_processes_have_the_same_losses_to_the_bit() -> None:
    losses = []
    for hash_seed in ("random", "5"):
        printed, _ = seeded_in_a_process(hash_seed)
        losses.append([line for line in printed if line.startswith("loss ")])
    assert len(losses[0]) == 10
    assert losses[0] == losses[1]


def test_dropout_removed_leaves_the_order_of_backward(ms: Any, dump_path: Path) -> None:
    """An identity that a gradient's branch hangs on would keep its layer's backward open to the end."""
    orders = []
    for removed in (False, True):
        seed_all(rm_dropout=removed)
        net = nn.SequentialCell(nn.Dense(4, 4), nn.Dropout(p=0.5), nn.Dense(4, 4))
        net.set_train()
        path = dump_path.with_name(f"{removed}")
        with recording(net, path, level="mix"):
            mindspore.grad(net)(Tensor(np.ones((2, 4), np.float32)))
        orders.append(list(read_step(path).data))
    seed_all()
    assert orders[0] == orders[1]


def test_who_only_seeds_is_told_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    seed_all(5)
    seed_all(6, mode=False)
    assert capfd.readouterr() == ("", "")
