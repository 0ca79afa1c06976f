"""Train the PyTorch network of a pair: ``python -m zoo.golden_side ROOT JOB…``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from zoo.environment import import_zoos, prepare

prepare()

import torch  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

from msprobe_ms.pytorch import PrecisionDebugger  # noqa: E402
from zoo.alone import alone  # noqa: E402
from zoo.jobs import GOLDEN, STEPS, Job, Trained, weights_file  # noqa: E402
from zoo.pair import Pair, load  # noqa: E402
from zoo.rounding import LEAST  # noqa: E402

#: So often a step is repeated in float64 with parameters that rounding moves.
MOVES = 8
#: Of Adam. MindSpore adds it to the root of the second moment before the bias is corrected, PyTorch afterwards; so much
#: more is the same in the first update, the only one whose result is recorded.
EPSILON = 1e-8
EPSILON_OF_TARGET = EPSILON / (1 - 0.999) ** 0.5


def make(pair: Pair) -> torch.nn.Module:
    """The network in training mode, its weights drawn; constant ones (norms, biases) are made uneven."""
    torch.manual_seed(2 * pair.seed)
    net = pair.golden().float().train()
    generator = torch.Generator().manual_seed(2 * pair.seed + 1)
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if tensor.is_floating_point() and tensor.numel() > 1 and (tensor.dim() < 2 or tensor.std() == 0):
                noise = torch.randn(tensor.shape, generator=generator) * 0.1
                tensor.add_(noise.abs() if name.endswith("running_var") else noise)
    return net


def save_weights(net: torch.nn.Module, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: tensor.numpy() for name, tensor in net.state_dict().items()})


def batch_of(pair: Pair, step: int) -> dict[str, torch.Tensor]:
    """The batch of a step; its floats as precise as those that the framework makes."""
    tensors = {name: torch.from_numpy(array) for name, array in pair.batch_of(step).items()}
    kind = torch.get_default_dtype()
    return {name: each.to(kind) if each.is_floating_point() else each for name, each in tensors.items()}


def optimizer_of(pair: Pair, net: torch.nn.Module, epsilon: float = EPSILON) -> torch.optim.Optimizer:
    if pair.optimizer == "adam":
        return torch.optim.Adam(net.parameters(), pair.learning_rate, eps=epsilon)
    return torch.optim.SGD(net.parameters(), pair.learning_rate, momentum=0.9)


def step_of(pair: Pair, net: torch.nn.Module, step: int) -> Any:
    """Forward and backward of one step; returns the loss."""
    loss = pair.golden_loss(net, batch_of(pair, step), torch.nn.functional.cross_entropy)
    loss.backward()
    return loss


class _Precise(TorchFunctionMode):
    """Computes in float64 what a network asks to be computed in float32."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        double = torch.float64
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        arguments = tuple(double if each is torch.float32 else each for each in arguments)
        named = {name: double if each is torch.float32 else each for name, each in (named or {}).items()}
        return function(*arguments, **named)


def trained(pair: Pair) -> list[Trained]:
    """What is recorded of a healthy training, without the tool."""
    net = make(pair)
    optimizer, steps = optimizer_of(pair, net), []
    for step in range(STEPS):
        loss, gradients = _gradients(pair, net, step)
        optimizer.step()
        steps.append(Trained(loss, gradients, _parameters(net)))
    return steps


def exactly(pair: Pair, steps: list[Trained], epsilon: float = EPSILON) -> list[tuple[Trained, Trained]]:
    """What a side ought to compute in these steps, in float64, and how far rounding may move that.

    Each step begins where that side began it, so that its rounding does not grow from step to step: gradients come of
    its own parameters, and parameters of its own gradients.
    """
    net, exact = make(pair).double(), []
    optimizer = optimizer_of(pair, net, epsilon)
    torch.set_default_dtype(torch.float64)
    try:
        for step, own in enumerate(steps):
            loss, gradients = _gradients(pair, net, step)
            moved = _moved(pair, net, step, (loss, gradients))
            for path, parameter in net.named_parameters():
                parameter.grad = torch.from_numpy(own.gradients[path]).double() if path in own.gradients else None
            optimizer.step()
            exact.append((Trained(loss, gradients, _parameters(net)), moved))
            _set(net, own.parameters)
    finally:
        torch.set_default_dtype(torch.float32)
    return exact


def _moved(pair: Pair, net: torch.nn.Module, step: int, exact: tuple[float, dict[str, np.ndarray]]) -> Trained:
    """How far, in the root of the mean square, a step moves with parameters that rounding moves.

    A network that is badly conditioned shows it here, and so does one where a value lies on a bend, as of a ReLU, so
    near that rounding chooses the side.
    """
    own, generator = _parameters(net), np.random.default_rng(step)
    losses, squares = 0.0, {path: np.zeros_like(gradient) for path, gradient in exact[1].items()}
    for _ in range(MOVES):
        noise = {path: generator.standard_normal(value.shape) for path, value in own.items()}
        _set(net, {path: value * (1 + LEAST * noise[path]) for path, value in own.items()})
        loss, gradients = _gradients(pair, net, step)
        losses += (loss - exact[0]) ** 2 / MOVES
        for path, gradient in gradients.items():
            squares[path] += (gradient - exact[1][path]) ** 2 / MOVES
    _set(net, own)
    return Trained(losses**0.5, {path: np.sqrt(square) for path, square in squares.items()}, {})


def _set(net: torch.nn.Module, values: dict[str, np.ndarray]) -> None:
    with torch.no_grad():
        for path, parameter in net.named_parameters():
            parameter.copy_(torch.as_tensor(values[path]))


def _gradients(pair: Pair, net: torch.nn.Module, step: int) -> tuple[float, dict[str, np.ndarray]]:
    net.zero_grad()
    with _Precise() if torch.get_default_dtype() is torch.float64 else nullcontext():
        loss = step_of(pair, net, step).item()
    return loss, {path: each.grad.numpy().copy() for path, each in net.named_parameters() if each.grad is not None}


def _parameters(net: torch.nn.Module) -> dict[str, np.ndarray]:
    return {path: each.detach().numpy().copy() for path, each in net.named_parameters()}


def train(job: Job, root: Path) -> None:
    pair = load(job.pair, root)
    net = make(pair)
    save_weights(net, weights_file(root, job.pair))
    optimizer = optimizer_of(pair, net)
    with job.dump_path(root) as dump_path:
        debugger = PrecisionDebugger(task=job.task, level=job.level, dump_path=str(dump_path))
        for step in range(STEPS):
            optimizer.zero_grad()
            debugger.start(net)
            step_of(pair, net, step)
            debugger.stop()
            debugger.step()
            optimizer.step()


if __name__ == "__main__":
    import_zoos(GOLDEN)
    for text in sys.argv[2:]:
        alone(train, Job.parse(text), Path(sys.argv[1]))
