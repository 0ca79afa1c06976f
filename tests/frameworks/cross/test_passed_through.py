"""Modules that return their own arguments, views of them, or what they wrote in place, alone or beside others: every
gradient recorded of a call is the one that autograd gives a copy of the tensor, made where the call begins or ends."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops
from recording import read_step, recording

from msprobe_ms.pytorch import record

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
ROUNDS = 40


@dataclass
class Plan:
    """What a module does with its arguments: numbered values, of which it returns some."""

    steps: list[tuple[Any, ...]] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)
    in_a_tuple: bool = True
    children: list[Plan] = field(default_factory=list)
    #: Of each value the memory it shows, and those that something other than a child has used.
    memory: dict[int, object] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)


def drawn(draw: random.Random, memory: Sequence[object], alone: set[object], kinds: Sequence[str], depth: int) -> Plan:
    """A plan. ``alone``: memory that only this call shows.

    What a child is given nobody else uses, or else nothing could tell a use of the argument from one of the result:
    they are one tensor. What is written in place no other value shows, as copies would not share the writing.
    """
    plan = Plan(memory=dict(enumerate(memory)))
    values = list(plan.memory)

    def new(where: object) -> int:
        plan.memory[number := len(plan.memory)] = where
        values.append(number)
        return number

    for _ in range(draw.randint(0, 4)):
        kind, value = draw.choice(kinds), draw.choice(values)
        where, mine = plan.memory[value], [plan.memory[each] for each in values]
        if kind == "child":
            free = [each for each in values if each not in plan.used]
            if not depth or not free:
                continue
            given = draw.sample(free, draw.randint(1, min(2, len(free))))
            shown = [plan.memory[each] for each in given]
            theirs = {each for each in shown if mine.count(each) == 1 and each in alone}
            child = drawn(draw, shown, theirs, kinds, depth - 1)
            plan.children.append(child)
            values[:] = [each for each in values if each not in given]
            results = [new(child.memory[each]) for each in child.returned]
            alone |= {plan.memory[each] for each in results} - set(shown)
            plan.used |= {r for r, each in zip(results, child.returned, strict=True) if each in child.used}
            plan.steps.append((kind, len(plan.children) - 1, given, results))
        elif kind.startswith("write"):
            if where in alone and mine.count(where) == 1:
                plan.steps.append((kind, value))
        else:
            plan.used.add(value)
            alone.add(made := object())
            if kind == "add":
                plan.used.add(other := draw.choice(values))
                plan.steps.append((kind, value, other, new(made)))
            elif kind == "halves":
                plan.steps.append((kind, value, new(made), new(made)))
            else:
                plan.steps.append((kind, value, new(made if kind == "double" else where)))
    plan.returned = draw.sample(values, draw.randint(1, min(3, len(values))))
    plan.in_a_tuple = len(plan.returned) > 1 or draw.random() < 0.5
    return plan


def run(plan: Plan, children: Sequence[Any], halves: Callable[[Any], Sequence[Any]], args: Sequence[Any]) -> Any:
    """Do it, with tensors of any framework."""
    values = dict(enumerate(args))
    for kind, first, *others in plan.steps:
        if kind == "child":
            given, results = others
            returned = children[first](*[values[each] for each in given])
            values |= zip(results, returned if isinstance(returned, tuple) else [returned], strict=True)
        elif kind == "double":
            values[others[0]] = values[first] * 2
        elif kind == "view":
            values[others[0]] = values[first].view(2, 3)
        elif kind == "row":
            values[others[0]] = values[first][:, :]
        elif kind == "add":
            values[others[1]] = values[first] + values[others[0]]
        elif kind == "halves":
            values[others[0]], values[others[1]] = halves(values[first])
        elif kind == "write":
            values[first].mul_(3)
        else:
            values[first].view(-1).mul_(3)
    returned = tuple(values[each] for each in plan.returned)
    return returned if plan.in_a_tuple else returned[0]


class Module(torch.nn.Module):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.children_ = torch.nn.ModuleList(Module(child) for child in plan.children)

    def forward(self, *args: torch.Tensor) -> Any:
        return run(self.plan, self.children_, lambda x: torch.stack([x, x * 3]).unbind(), args)


class Network(torch.nn.Module):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.body = Module(plan)


class Cell(nn.Cell):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.children_ = nn.CellList([Cell(child) for child in plan.children])

    def construct(self, *args: Tensor) -> Any:
        return run(self.plan, self.children_, lambda x: ops.unstack(ops.stack([x, x * 3])), args)


class CellNetwork(nn.Cell):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.body = Cell(plan)


def loss_of(returned: Any, weights: Sequence[int]) -> Any:
    """A scalar that takes of each result so many times its sum; None where it takes nothing."""
    results = returned if isinstance(returned, tuple) else (returned,)
    return sum((each * weight).sum() for each, weight in zip(results, weights, strict=True) if weight) or None


def inputs(count: int, made: bool) -> list[torch.Tensor]:
    leaves = [torch.tensor(X + index, requires_grad=True) for index in range(count)]
    return [leaf * 1 for leaf in leaves] if made else leaves


Gradients = dict[str, list[torch.Tensor | None]]


def autograds_own(plan: Plan, given: list[torch.Tensor], weights: Sequence[int]) -> dict[str, Gradients] | None:
    """By module the gradients of copies: of its arguments (``output``) and of its results (``input``)."""
    network, copies = Network(plan), dict[str, dict[str, list[torch.Tensor]]]()

    def copied(values: Sequence[torch.Tensor], name: str, side: str) -> tuple[torch.Tensor, ...]:
        kept = [each.clone() for each in values]
        copies.setdefault(name, {})[side] = kept
        return tuple(each.clone() for each in kept)

    for name, module in network.named_modules():
        if isinstance(module, Module):
            module.register_forward_pre_hook(lambda _, args, name=name: copied(args, name, "output"))
            module.register_forward_hook(
                lambda _, args, result, name=name: (
                    copied(result, name, "input") if isinstance(result, tuple) else copied([result], name, "input")[0]
                )
            )
    if (loss := loss_of(network.body(*given), weights)) is None:
        return None
    every = [each for sides in copies.values() for side in sides.values() for each in side]
    gradients = iter(torch.autograd.grad(loss, every, allow_unused=True))
    return {
        name: {side: [next(gradients) for _ in values] for side, values in sides.items()}
        for name, sides in copies.items()
    }


def assert_same(recorded: Callable[[str, int], np.ndarray | None], expected: Gradients, where: str) -> None:
    for side, gradients in expected.items():
        for index, gradient in enumerate(gradients):
            mine = recorded(side, index)
            if mine is None or gradient is None:  # zeros may be recorded, or nothing
                other = mine if gradient is None else gradient.numpy()
                assert other is None or not other.any(), f"{where}.{side}.{index}"
            else:
                np.testing.assert_array_equal(mine, gradient.numpy(), f"{where}.{side}.{index}")


BARE = ("double", "view", "row", "add", "halves", "child", "child")
WRITING = ("double", "add", "child", "write", "write", "write in a view")


def cases(kinds: Sequence[str]) -> list[tuple[Plan, int, list[int]]]:
    """Plans, how many arguments each takes, and what the loss takes of each result."""
    found = []
    for seed in range(ROUNDS):
        draw = random.Random(seed)
        memory = [object() for _ in range(draw.randint(1, 2))]
        plan = drawn(draw, memory, set(memory), kinds, 2)
        found.append((plan, len(memory), [draw.choice([0, 1, 2, 7]) for _ in plan.returned]))
    return found


@pytest.mark.parametrize(("kinds", "made"), [(BARE, True), (BARE, False), (WRITING, True)])
def test_pytorch(tmp_path: Path, kinds: Sequence[str], made: bool) -> None:
    """``made``: what the network is given has a history, or is a leaf."""
    for number, (plan, count, weights) in enumerate(cases(kinds)):
        expected = autograds_own(plan, inputs(count, made), weights)
        if expected is None:
            continue
        network, given = Network(plan), inputs(count, made)
        with record(network, level="L0", task="tensor", dump_path=tmp_path / str(number)) as dump:
            loss_of(network.body(*given), weights).backward()

        def recorded(side: str, index: int, entry: str, dump: Any = dump) -> np.ndarray | None:
            item = dump[entry].get(f"{side}.{index}") if entry in dump else None
            return None if item is None or repr(item) == "nothing" else item.numpy()

        for name, gradients in expected.items():
            entry = f"Module.{name}.Module.backward.0"
            assert_same(lambda *place, entry=entry, f=recorded: f(*place, entry), gradients, f"{plan}: {entry}")
        assert not any(each._backward_hooks for each in given if each.is_leaf)


def test_mindspore(ms: Any, tmp_path: Path) -> None:
    """Its gradients are those of the same network in PyTorch, but for `x[:, :]`, which is `x` itself there."""
    for number, (plan, count, weights) in enumerate(cases([kind for kind in BARE if kind != "row"])):
        made = bool(number % 2)
        expected = autograds_own(plan, inputs(count, made), weights)
        if expected is None:
            continue
        network = CellNetwork(plan)

        def forward(*args: Tensor, made: bool = made, network: Any = network, weights: Any = weights) -> Tensor:
            return loss_of(network.body(*[each * 1 if made else each for each in args]), weights)

        given = [Tensor(X + index) for index in range(count)]
        gradient = mindspore.grad(forward, tuple(range(count)))
        with recording(network, tmp_path / str(number), level="L0", task="tensor"):
            recorded_ones = gradient(*given)
        assert np.array_equal(np.array(recorded_ones), np.array(gradient(*given)))
        step = read_step(tmp_path / str(number))
        for name, gradients in expected.items():
            entry = f"Cell.{name}.Cell.backward.0"

            def recorded(side: str, index: int, entry: str = entry, step: Any = step) -> np.ndarray | None:
                leaves = step.data.get(entry, {}).get(side, [])
                leaf = leaves[index] if index < len(leaves) else None
                return None if leaf is None else step.array(leaf)

            assert_same(recorded, gradients, f"{plan}: {entry}")


def test_what_is_written_into_a_view(dump_path: Path) -> None:
    """The gradient of the view that was given, which no longer comes by the node that made the view."""
    network = torch.nn.Sequential(torch.nn.Unflatten(1, (2, 3)), torch.nn.ReLU(inplace=True))
    x = torch.tensor([[1.0, -2, 3, -4, 5, 6]], requires_grad=True)
    with record(network, level="L0", task="tensor", dump_path=dump_path) as dump:
        (network(x * 1) * 7).sum().backward()
    assert dump["Module.1.ReLU.backward.0"]["output.0"].numpy().tolist() == [[[7, 0, 7], [0, 7, 7]]]
    assert x.grad is not None and x.grad.tolist() == [[7, 0, 7, 0, 7, 7]]


def test_a_function_that_hands_a_parameter_on_has_no_backward(dump_path: Path) -> None:
    """In PyTorch as in MindSpore: else a dump of one would have calls that one of the other has not."""
    network = torch.nn.Linear(2, 2)
    with record(network, level="L1", dump_path=dump_path) as dump:
        (network.weight.to(torch.float32) * (network.bias * 2).to(torch.float32)).sum().backward()
    assert [name for name in dump if ".to." in name] == [
        "Tensor.to.0.forward", "Tensor.to.1.forward", "Tensor.to.1.backward"
    ]  # fmt: skip
