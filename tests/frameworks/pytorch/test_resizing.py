"""Memory that the training resizes or frees after it was recorded: that is its own business, as without the tool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from recording import read_step, write_config
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from msprobe_ms.pytorch import PrecisionDebugger, record

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.int64, torch.uint8,
          torch.uint16, torch.bool]  # fmt: skip


@pytest.mark.parametrize("keys", [{"summary_mode": "md5"}, {"task": "tensor"}, {"task": "tensor", "async_dump": True}])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_what_was_recorded_can_be_resized(dump_path: Path, dtype: torch.dtype, keys: dict[str, Any]) -> None:
    net = nn.Sequential(nn.Identity())
    debugger = PrecisionDebugger(write_config(dump_path, level="mix", **keys))
    given = [torch.ones(3, dtype=dtype), torch.ones(4, 4, dtype=dtype).T, torch.ones(1, dtype=dtype).expand(5)]
    debugger.start(net)
    for tensor in given:
        net(tensor)
        assert tensor.untyped_storage().resizable()
        tensor.untyped_storage().resize_(0)
    debugger.stop()
    debugger.step()
    data = read_step(dump_path).data
    assert [data[f"Module.0.Identity.forward.{number}"]["output"][0]["Max"] for number in range(3)] == [1, 1, 1]


def test_results_and_gradients_too(dump_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 3))
    x = torch.ones(2, 4, requires_grad=True)
    with record(net, level="mix", dump_path=dump_path):
        result = net(x)
        into = torch.empty(0)
        torch.add(torch.ones(2), 1, out=into)
        torch.add(torch.ones(100), 1, out=into.resize_(0))
        result.sum().backward()
    gradients = [x.grad, *(parameter.grad for parameter in net.parameters())]
    assert all(each.untyped_storage().resizable() for each in (x, result, into, *net.parameters(), *gradients))
    assert read_step(dump_path).data["Torch.add.1.forward"]["output"][0]["shape"] == [100]


def test_parameters_that_are_swapped_for_others(dump_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 3))
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with record(net, level="mix", dump_path=dump_path):
            net.double()
            net(torch.ones(2, 4, dtype=torch.float64)).sum().backward()
            net.float()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert net[0].weight.dtype == torch.float32
    assert not any(parameter._backward_hooks for parameter in net.parameters())
    assert read_step(dump_path).data["Module.0.Linear.forward.0"]["output"][0]["dtype"] == "torch.float64"


@contextmanager
def alone(file: Path) -> Iterator[Any]:
    """A job of one process."""
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=0, world_size=1)
    try:
        yield init_device_mesh("cpu", (1,))
    finally:
        dist.destroy_process_group()


def trained(mesh: Any, level: str | None, dump_path: Path) -> list[torch.Tensor]:
    # Half a second, which those that only collect this file need not spend.
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    for each in (net[0], net[2], net):
        fully_shard(each, mesh=mesh)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def steps() -> None:
        for _ in range(2):
            net(torch.ones(3, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    if level is None:
        steps()
    else:
        with record(net, level=level, dump_path=dump_path):
            steps()
    return [parameter.full_tensor() for parameter in net.parameters()]


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_parameters_that_are_freed_between_calls(tmp_path: Path, dump_path: Path, level: str) -> None:
    """FSDP gathers those of a layer before its call and frees them after it."""
    with alone(tmp_path / "ranks") as mesh:
        expected, found = trained(mesh, None, dump_path), trained(mesh, level, dump_path)
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
    dump = read_step(dump_path)
    parameters = dump.data["Module.0.FSDPLinear.forward.1"]["parameters"]
    assert parameters["weight"]["shape"] == [4, 4] and parameters["weight"]["Max"] is not None
