"""What users put around PyTorch's operations sees those of the training, and none of this package."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F
from recording import read_step
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_map_only
from torch.utils.flop_counter import FlopCounterMode

from msprobe_ms.frameworks.pytorch import modes
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.frameworks.pytorch.modes import Quiet, unseen
from msprobe_ms.pytorch import PrecisionDebugger, record
from torture.interrupts.places import Interruption, Survey

RECORDED = [("L0", "statistics"), ("L1", "statistics"), ("mix", "statistics"), ("mix", "tensor")]

#: As a user's class or mode looks them up, who registered them when the script began.
REGISTERED = {
    F.relu: "relu", F.linear: "linear", F.layer_norm: "layer_norm", F.cross_entropy: "cross_entropy",
    torch.einsum: "einsum", torch.cat: "cat", torch.Tensor.add: "add", torch.Tensor.mul: "mul",
    torch.Tensor.mul_: "mul_", torch.Tensor.split: "split", torch.Tensor.__rsub__: "__rsub__",
    torch.Tensor.__getitem__: "__getitem__", torch.Tensor.__setitem__: "__setitem__", torch.Tensor.ge: "ge",
    torch.Tensor.backward: "backward",
}  # fmt: skip


class Net(nn.Module):
    """Functions of C++ and of Python, methods, operators in place and on both sides, indices."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm, self.head = nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm(self.fc(x)))
        y = 1 - (1 + y.add(y) * 2)
        y = (y.sigmoid() + 0).mul_(2) / 2
        y[0] = (y[1] >= 0) * y[1]
        a, b = y.split(2, -1)
        return self.head(torch.cat([torch.einsum("bi,bi->bi", a, b)[:, :1], a[:, :1]], -1))


def train(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    net.zero_grad(set_to_none=True)
    loss = F.cross_entropy(net(x), torch.tensor([0, 1, 0]))
    loss.backward()
    return loss.detach()


def told(function: Any, types: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """All that a handler can see of a call."""
    names = sorted(kind.__name__ for kind in types)
    kind = type(function).__name__
    return REGISTERED.get(function), getattr(function, "__name__", ""), kind, names, len(args), sorted(kwargs or {})


class FunctionMode(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(told(func, types, args, kwargs))
        return func(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Logged(torch.Tensor):
    """A tensor that is told of functions."""

    seen: ClassVar[list[Any]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(told(func, types, args, kwargs))
        return super().__torch_function__(func, types, args, kwargs)


class Wrapped(torch.Tensor):
    """A tensor that holds another and is told of operations."""

    seen: ClassVar[list[str]] = []

    @staticmethod
    def __new__(cls, inner: torch.Tensor, requires_grad: bool = False) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=inner.device, requires_grad=requires_grad
        )

    def __init__(self, inner: torch.Tensor, requires_grad: bool = False) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(str(func))
        args, kwargs = tree_map_only(Wrapped, lambda each: each.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, Wrapped, func(*args, **kwargs))


class Twice(nn.Module):
    """Uses its argument in several places."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x + x.sin()


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_classes_that_hold_tensors_see_what_they_see_without_the_tool(dump_path: Path, level: str) -> None:
    net = nn.Sequential(Twice(), Twice())

    def seen() -> tuple[list[str], torch.Tensor]:
        Wrapped.seen.clear()
        x = Wrapped(torch.arange(3.0), True)
        net(x).sum().backward()
        return [*Wrapped.seen], x.grad.inner

    without, gradient = seen()
    with record(net, level=level, dump_path=dump_path):
        recorded, same = seen()
    assert recorded == without
    assert torch.equal(same, gradient)
    (leaf,) = read_step(dump_path).data["Module.0.Twice.backward.0"]["output"]
    assert leaf["shape"] == [3]


#: What gradients in memory of their own are taken over by; which it is does not matter to what is computed.
KEPT_OR_COPIED = ("aten.detach.default", "aten.new_empty_strided.default", "aten.copy_.default", "aten.clone.default")


def seen_by(
    mode: Any, x: Callable[[], torch.Tensor], recorded: Callable[[nn.Module], AbstractContextManager[Any]]
) -> Any:
    torch.manual_seed(3)
    net, given = Net(), x()
    log = Logged.seen if mode is None else mode.seen
    with recorded(net):
        log.clear()
        with mode or nullcontext():
            loss = train(net, given)
        seen = [each for each in log if each not in KEPT_OR_COPIED]
    return loss.as_subclass(torch.Tensor).item(), seen


@pytest.mark.parametrize(("level", "task"), RECORDED)
@pytest.mark.parametrize("kind", [FunctionMode, DispatchMode, Logged])
def test_they_see_what_they_see_without_the_tool(dump_path: Path, kind: type, level: str, task: str) -> None:
    mode = None if kind is Logged else kind()

    def x() -> torch.Tensor:
        values = torch.arange(12.0).reshape(3, 4) / 12
        return values.as_subclass(Logged) if kind is Logged else values

    without = seen_by(mode, x, lambda net: nullcontext())
    recorded = partial(record, level=level, task=task, dump_path=dump_path)
    assert seen_by(mode, x, recorded) == without and without[1]
    step = read_step(dump_path)
    assert any(name.endswith(("backward.0", "0.backward")) for name in step.data)
    assert seen_by(mode, x, lambda net: nullcontext()) == without


class NamingMode(TorchFunctionMode):
    """As in PyTorch's own documentation."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append((torch.overrides.resolve_name(func), torch.overrides.is_tensor_method_or_property(func)))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_functions_have_their_names(dump_path: Path, level: str) -> None:
    """Also where nobody has asked for names before: PyTorch makes its table of them once."""

    def names() -> list[Any]:
        with NamingMode() as mode:
            train(net, x)
        return mode.names

    net, x = Net(), torch.randn(3, 4)
    train(net, x)
    expected = names()
    assert ("torch.nn.functional.relu", False) in expected and ("torch.Tensor.add", True) in expected
    for table in list(vars(torch.overrides).values()):
        if hasattr(table, "cache_clear"):
            table.cache_clear()
    with record(net, level=level, dump_path=dump_path):
        assert names() == expected
    assert names() == expected


@pytest.mark.parametrize("level", ["L0", "L1", "mix", "debug"])
@pytest.mark.parametrize("kind", [FunctionMode, DispatchMode])
def test_starting_and_stopping_is_not_seen(dump_path: Path, kind: type, level: str) -> None:
    net, mode = Net(), kind()
    debugger = PrecisionDebugger(dump_path=dump_path, level=level)
    value = torch.ones(2, requires_grad=True)
    with mode:
        debugger.start(net)
        debugger.save([value], "value")
        debugger.stop()
        debugger.step()
    assert mode.seen == []


class Raising(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise ValueError("the user's")


def test_modes_are_put_back_in_their_order() -> None:
    def fail() -> None:
        with unseen(), Quiet():
            torch.ones(2).add(1)
            raise KeyError

    outer, inner = DispatchMode(), DispatchMode()
    with outer, inner:
        with pytest.raises(KeyError):
            fail()
        assert outer.seen == inner.seen == []
        assert torch._C._len_torch_dispatch_stack() == 2
        torch.ones(2)
    assert inner.seen == outer.seen == ["aten.ones.default"]
    assert torch.is_grad_enabled()


class Around(TorchDispatchMode):
    """A user's mode that changes nothing."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class Told(TorchFunctionMode):
    """Another, of functions."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("after_calls", [False, True])
def test_an_interrupt_leaves_the_modes_of_the_user(after_calls: bool) -> None:
    def work() -> None:
        modes._probed.cache_clear()
        assert modes._told_by(torch.Tensor.__mul__)[0] is torch.Tensor.mul
        quiet = Quiet()
        try:
            with unseen(), quiet:
                torch.ones(1)
        except BaseException:
            quiet.restore()
            raise

    work()
    survey = Survey(KeyboardInterrupt, after_calls=after_calls)
    with Around(), Told(), survey:
        work()
    for place in survey.chosen(3):
        with Around() as around, Told() as told:
            with suppress(KeyboardInterrupt), Interruption(KeyboardInterrupt, place):
                work()
            assert _get_current_dispatch_mode_stack() == [around], place
            assert _get_current_function_mode_stack() == [told], place
            assert torch.is_grad_enabled() and torch._C._is_torch_function_enabled(), place


def test_what_says_nothing_of_a_method_is_not_remembered() -> None:
    modes._probed.cache_clear()
    survey = Survey(RecursionError, after_calls=False)
    with survey:
        modes._told_by(torch.Tensor.__mul__)
    for place in survey.chosen(3):
        modes._probed.cache_clear()
        with suppress(RecursionError), Interruption(RecursionError, place):
            modes._told_by(torch.Tensor.__mul__)
        assert modes._told_by(torch.Tensor.__mul__)[0] is torch.Tensor.mul, place


def test_a_lack_of_stack_says_nothing_of_the_memory_of_a_tensor() -> None:
    class Near(torch.Tensor):
        def untyped_storage(self) -> Any:
            raise RecursionError

    with pytest.raises(RecursionError):
        PyTorch().is_readable(torch.ones(2).as_subclass(Near))


def test_an_error_of_a_mode_is_the_users(dump_path: Path) -> None:
    net, x = Net(), torch.ones(3, 4)
    with record(net, level="mix", dump_path=dump_path):
        with pytest.raises(ValueError, match="the user's"), Raising():
            net(x)
        assert torch.is_grad_enabled() and torch._C._len_torch_dispatch_stack() == 0
        train(net, x)
    assert "Module.head.Linear.backward.0" in read_step(dump_path).data


def profiled(net: nn.Module, x: torch.Tensor) -> list[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        train(net, x)
    names = [f"{event.key} {event.count}" for event in profile.key_averages()]
    return sorted(name for name in names if not name.startswith(TAKEN_OVER))


#: As `KEPT_OR_COPIED`, with what they are made of; and sums of gradients, which may be made in the memory of one.
TAKEN_OVER = ("aten::detach", "detach", "aten::copy_", "aten::clone", "aten::new_empty", "aten::empty", "aten::add")


def counted(net: nn.Module, x: torch.Tensor) -> tuple[int, int]:
    saved: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor)
        return tensor

    with FlopCounterMode(display=False) as flops, saved_tensors_hooks(pack, lambda tensor: tensor):
        train(net, x)
    return flops.get_total_flops(), len(saved)


@pytest.mark.parametrize(("level", "task"), RECORDED)
@pytest.mark.parametrize("count", [profiled, counted])
def test_profilers_and_counters_see_the_training(
    dump_path: Path, count: Callable[[nn.Module, torch.Tensor], Any], level: str, task: str
) -> None:
    net, x = Net(), torch.ones(3, 4)
    count(net, x)
    without = count(net, x)
    with record(net, level=level, task=task, dump_path=dump_path):
        assert count(net, x) == without


def test_anomaly_detection_finds_what_it_finds(dump_path: Path) -> None:
    net = Net()
    with record(net, level="mix", dump_path=dump_path), torch.autograd.detect_anomaly(check_nan=True):
        train(net, torch.ones(3, 4))
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values"):
            (net(torch.zeros(3, 4)) * 0).sqrt().mul(0).sum().backward()


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_fake_tensors_are_not_recorded(dump_path: Path, level: str) -> None:
    """They are traced: nothing is recorded, and nothing is missing."""
    net = Net()
    with record(net, level=level, dump_path=dump_path):
        with FakeTensorMode(allow_non_fake_inputs=True) as fake:
            assert net(fake.from_tensor(torch.ones(3, 4))).shape == (3, 2)
        train(net, torch.ones(3, 4))
    data = read_step(dump_path).data  # no error log
    assert not any(".1.forward" in name and name.startswith("Functional.layer_norm") for name in data)
    assert not any(name.startswith("Module.fc.Linear.forward.1") for name in data)


def test_hooks_of_the_user_see_the_training(dump_path: Path) -> None:
    seen: list[Any] = []

    def tell(kind: str) -> Callable[..., None]:
        return lambda *given: seen.append((kind, len(given)))

    net = Net()
    net.fc.register_forward_pre_hook(tell("before"), with_kwargs=True, prepend=True)
    net.fc.register_forward_hook(tell("after"), with_kwargs=True, always_call=True)
    net.fc.register_full_backward_pre_hook(tell("backward before"))
    net.fc.register_full_backward_hook(tell("backward"))
    net.fc.weight.register_hook(tell("gradient"))
    net.fc.weight.register_post_accumulate_grad_hook(tell("accumulated"))
    net.fc.register_state_dict_pre_hook(tell("state"))
    anywhere = nn.modules.module.register_module_forward_hook(tell("any module"))
    try:
        x = torch.ones(3, 4, requires_grad=True)
        train(net, x)
        net.state_dict()
        without, seen[:] = list(seen), []
        with record(net, level="mix", task="tensor", dump_path=dump_path):
            train(net, x)
            net.state_dict()
        assert seen == without
    finally:
        anywhere.remove()
