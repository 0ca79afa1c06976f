"""Modules and functions that are copied, pickled, saved or sent away while recording: as without it."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from recording import read_step
from thorough import thorough
from torch import nn
from torch.utils import _device

from msprobe_ms.pytorch import PrecisionDebugger, record
from msprobe_ms.recording import recorder

LEVELS = ("L0", "L1", "mix")


def network() -> nn.Module:
    """With a layer that holds a function, and one with hooks of the user's."""
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=F.relu, batch_first=True)
    net = nn.Sequential(layer, nn.Linear(4, 2))
    net[1].register_forward_pre_hook(ahead, with_kwargs=True, prepend=True)
    net[1].register_forward_hook(behind, with_kwargs=True, always_call=True)
    return net


def ahead(module: nn.Module, args: Any, kwargs: Any) -> None:
    """A hook of the user's."""


def behind(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
    """A hook of the user's."""


def x() -> torch.Tensor:
    return torch.arange(24.0).reshape(3, 2, 4) / 24


def hooks(net: nn.Module) -> list[Any]:
    """All that tables of hooks hold, but for numbers."""
    return [
        (name, table, list(value.values()))
        for name, module in net.named_modules()
        for table, value in vars(module).items()
        if "hook" in table and isinstance(value, dict) and value
    ]


def saved(net: nn.Module) -> nn.Module:
    file = io.BytesIO()
    torch.save(net, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def sent(net: nn.Module) -> nn.Module:
    """As to a worker process."""
    return pickle.loads(ForkingPickler.dumps(net))


WAYS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "deepcopy": copy.deepcopy,
    "deepcopy twice": lambda net: copy.deepcopy(copy.deepcopy(net)),
    "saved": saved,
    "sent": sent,
    **{f"protocol {number}": lambda net, number=number: pickle.loads(pickle.dumps(net, number)) for number in range(6)},
}


@pytest.mark.parametrize(
    ("way", "level"),
    [
        each if row % len(LEVELS) == column else thorough(each)
        for row, way in enumerate(WAYS)
        for column, level in enumerate(LEVELS)
        for each in [(way, level)]
    ],
)
def test_a_copy_is_what_it_is_without_the_tool(dump_path: Path, level: str, way: str) -> None:
    net = network()
    before, expected = hooks(net), net(x())
    with record(net, level=level, dump_path=dump_path):
        net(x())
        copied = WAYS[way](net)
        assert hooks(copied) == before
        assert torch.equal(copied(x()), expected)
    assert hooks(net) == hooks(copied) == before
    assert "__reduce_ex__" not in vars(nn.Module)
    assert pickle.dumps(copied)
    if "deepcopy" in way:
        assert copied[0].activation is F.relu


def test_calls_of_a_copy_are_not_the_modules(dump_path: Path) -> None:
    """A teacher or an average of the weights would falsify the dump."""
    net = nn.Sequential(nn.Linear(4, 2))
    with record(net, level="L0", dump_path=dump_path):
        average = torch.optim.swa_utils.AveragedModel(net)
        net(x()).sum().backward()
        for other in (average, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            other(x()).sum().backward()
    modules = [name for name in read_step(dump_path).data if name.startswith("Module")]
    assert modules == [f"Module.0.Linear.{kind}.0" for kind in ("forward", "backward", "parameters_grad")]


def test_a_module_that_shares_its_tables_with_another_is_not_that_one(dump_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 2))
    with record(net, level="L0", dump_path=dump_path):
        copy.copy(net[0])(x())
    assert not read_step(dump_path).data


def test_replicas_are_the_module(dump_path: Path) -> None:
    """Those that DataParallel makes at each call."""
    net = nn.Sequential(nn.Linear(4, 2))
    with record(net, level="L0", dump_path=dump_path):
        replica = net[0]._replicate_for_data_parallel()
        replica.weight, replica.bias = net[0].weight, net[0].bias
        replica(x())
    assert list(read_step(dump_path).data) == ["Module.0.Linear.forward.0"]


def test_networks_saved_meanwhile_load_where_the_tool_is_not_installed(dump_path: Path) -> None:
    net = nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), nn.Linear(4, 2))
    files = [str(dump_path.with_name(f"{level}.pt")) for level in LEVELS]
    for level, file in zip(LEVELS, files, strict=True):
        with record(net, level=level, dump_path=dump_path.with_name(level)):
            torch.save(net, file)
            expected = net(x())
    script = (
        "import sys; sys.modules['msprobe_ms'] = None\n"
        "import torch\n"
        f"for file in {files!r}:\n"
        "    net = torch.load(file, weights_only=False)\n"
        "    assert net[0].activation is torch.nn.functional.relu\n"
        "    print(float(net(torch.arange(24.0).reshape(3, 2, 4) / 24).sum()))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert [float(line) for line in run.stdout.split()] == pytest.approx([expected.sum().item()] * len(LEVELS))


@pytest.mark.parametrize("level", LEVELS)
def test_what_compilers_make_of_a_copy(dump_path: Path, level: str) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with record(net, level=level, dump_path=dump_path):
        expected = net(x())
        traced = torch.fx.symbolic_trace(net)
        for made in (
            torch.jit.script(copy.deepcopy(net)), torch.jit.trace(copy.deepcopy(net), x()), saved(traced),
            copy.deepcopy(traced), torch.export.export(copy.deepcopy(net), (x(),)).module(),
            torch.compile(copy.deepcopy(net), backend="eager"),
        ):  # fmt: skip
            assert torch.equal(made(x()), expected)


def test_a_traced_network_that_is_recorded_itself_travels(dump_path: Path) -> None:
    net = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    with record(net, level="mix", dump_path=dump_path):
        expected = net(x())
        for made in (saved(net), copy.deepcopy(net), pickle.loads(pickle.dumps(copy.deepcopy(net)))):
            assert torch.equal(made(x()), expected)


@pytest.mark.parametrize("level", LEVELS)
def test_tensors_travel_without_a_word(dump_path: Path, level: str) -> None:
    """PyTorch warns of tensors whose hooks are not saved."""
    net = network()
    given = x().requires_grad_()
    with record(net, level=level, dump_path=dump_path), warnings.catch_warnings():
        warnings.simplefilter("error")
        output = net(given)
        torch.save([given, output], io.BytesIO())
        ForkingPickler.dumps([given, *net.parameters()])
        copy.deepcopy([given, *net.parameters()])
    debugger = PrecisionDebugger(dump_path=dump_path.with_name("saved"), level="debug")
    output = given * 2
    debugger.save([given, output], "pair")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.save([given, output], io.BytesIO())
    debugger.step()


@pytest.mark.parametrize("way", WAYS)
def test_a_network_that_holds_its_debugger(dump_path: Path, way: str) -> None:
    net = network()
    net.debugger = debugger = PrecisionDebugger(dump_path=dump_path, level="mix")
    expected = net(x())
    debugger.start(net)
    copied = WAYS[way](net)
    assert copied.debugger is copy.copy(debugger) is debugger
    assert torch.equal(copied(x()), expected)
    debugger.stop()
    debugger.step()
    assert WAYS[way](net).debugger is debugger


def test_where_there_is_no_debugger_it_does_nothing(dump_path: Path) -> None:
    """As in a worker, or where a network is loaded later."""
    net, file = nn.Sequential(nn.Linear(4, 2)), dump_path.with_name("net.pt")
    net.debugger = PrecisionDebugger(dump_path=dump_path, level="mix")
    torch.save(net, file)
    script = (
        "import torch\n"
        f"net = torch.load({str(file)!r}, weights_only=False)\n"
        "net.debugger.start(net, rank_id=0)\n"
        "net(torch.ones(3, 4)).sum().backward()\n"
        "net.debugger.stop()\n"
        "net.debugger.step()\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert not dump_path.exists()


FUNCTIONS = {
    "written in Python": lambda: F.relu,
    "of C++": lambda: torch.relu,
    "of another module": lambda: F.linear,
    "in torch from elsewhere": lambda: torch.einsum,
    "method": lambda: torch.Tensor.add,
    "operator": lambda: torch.Tensor.__add__,
    "method written in Python": lambda: torch.Tensor.split,
    "autograd": lambda: torch.autograd.grad,
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions_are_what_they_are(dump_path: Path, level: str, kind: str) -> None:
    """To tables, pickles, copies and whoever compares or inspects them, made before, meanwhile or after."""
    find = FUNCTIONS[kind]
    genuine = find()
    before = {genuine: 1}
    signature = inspect.signature(genuine) if inspect.isfunction(genuine) else None
    with record(network(), level=level, dump_path=dump_path):
        meanwhile = find()
        assert before[meanwhile] == {meanwhile: 1}[genuine] == 1 and meanwhile in [genuine]
        assert isinstance(meanwhile, type(genuine)) and repr(meanwhile) == repr(genuine)
        assert [meanwhile.__name__, meanwhile.__doc__] == [genuine.__name__, genuine.__doc__]
        assert signature is None or inspect.signature(meanwhile) == signature
        pickles = [pickle.dumps(meanwhile, protocol) for protocol in (2, 4)]
        assert all(pickle.loads(each) == find() for each in pickles)
        stored = nn.Linear(1, 1)
        stored.act, stored.table = meanwhile, {meanwhile: meanwhile}
    assert all(pickle.loads(each) is genuine is find() for each in pickles)
    assert not any(b"msprobe" in each for each in pickles)
    assert stored.table[genuine] == genuine and stored.act == find()
    for made in (saved(stored), copy.deepcopy(stored), pickle.loads(pickle.dumps(stored))):
        assert made.act is made.table[genuine] is genuine


def test_what_was_stored_meanwhile_is_not_recorded_afterwards(dump_path: Path) -> None:
    with record(network(), level="mix", dump_path=dump_path / "first"):
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=F.gelu, batch_first=True)
        assert layer.activation_relu_or_gelu == 2  # it compares by identity
        functions = [layer.activation, F.relu, torch.relu, torch.Tensor.sigmoid]
    expected = layer(x())
    calls: list[str] = []
    sys.setprofile(
        lambda frame, event, _: calls.append(event) if frame.f_code.co_filename == recorder.__file__ else None
    )
    try:
        assert torch.equal(layer(x()), expected)
        assert all(torch.equal(function(x()), function(x())) for function in functions)
    finally:
        sys.setprofile(None)
    assert not calls


def test_devices_are_set_by_functions_that_were_asked_for_meanwhile(dump_path: Path) -> None:
    """PyTorch makes its set of functions that make tensors when it first needs it, and keeps it."""
    _device._device_constructors.cache_clear()
    with record(network(), level="mix", dump_path=dump_path), torch.device("meta"):
        assert torch.ones(2).is_meta and torch.zeros(2).is_meta and torch.tensor([1.0]).is_meta
    with torch.device("meta"):
        assert torch.ones(2).is_meta and torch.zeros(2).is_meta and torch.tensor([1.0]).is_meta


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_compilers_know_functions_that_were_stored_meanwhile(dump_path: Path, level: str) -> None:
    class Activated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act, self.other = F.relu, torch.sigmoid

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.act(x) + self.other(x)

    def compiled() -> list[Any]:
        traced = torch.fx.symbolic_trace(net)
        targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
        assert targets[:2] == [F.relu, torch.sigmoid]
        strict = torch.export.export(net, (x(),), strict=True).module()
        return [traced, torch.jit.trace(net, x()), strict, torch.compile(net, backend="eager", fullgraph=True)]

    with record(network(), level=level, dump_path=dump_path):
        net = Activated()
        expected = net(x())
        made = compiled()
        assert all(torch.equal(each(x()), expected) for each in made)
    assert all(torch.equal(each(x()), expected) for each in [*made, *compiled()])
