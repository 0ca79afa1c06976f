"""The networks whose training steps are timed, by name: ``(network, step)``. Frameworks are imported when asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: A network, and what trains it for one step; those of MindSpore take another optimizer than their own.
Training = tuple[Any, Callable[..., None]]


def encoder() -> Training:
    """MindSpore: a transformer encoder of 4 layers, width 256, 4 sequences of 64 tokens."""
    from mindspore import Tensor, nn

    # In the environment of another tool nothing of ours is installed.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from torture.nets.mindspore.transformers import Encoder

    generator = np.random.default_rng(7)
    net = Encoder(4, width=256, factor=4, length=64, tokens=1000, classes=1000, pooled=False)
    ids = Tensor(generator.integers(0, 1000, (4, 64)).astype(np.int32))
    labels = Tensor(generator.integers(0, 1000, 4 * 64).astype(np.int32))
    cross_entropy = nn.CrossEntropyLoss()

    def forward(ids: Tensor, labels: Tensor) -> Tensor:
        logits = net(ids)
        return cross_entropy(logits.reshape(-1, logits.shape[-1]), labels)

    return _mindspore(net, forward, ids, labels)


def dense() -> Training:
    """MindSpore: 100 × Dense(16) on 32 rows."""
    from mindspore import Tensor, nn

    net = nn.SequentialCell(*(nn.Dense(16, 16) for _ in range(100)))
    rows = Tensor(np.random.default_rng(7).standard_normal((32, 16)).astype(np.float32))
    return _mindspore(net, lambda rows: net(rows).square().mean(), rows)


def _mindspore(net: Any, forward: Callable[..., Any], *given: Any) -> Training:
    import mindspore as ms

    net.set_train()
    own = sgd(net)
    gradient = ms.value_and_grad(forward, None, net.trainable_params())

    def step(optimizer: Any = own) -> None:
        loss, gradients = gradient(*given)
        optimizer(gradients)
        float(loss)
        ms.runtime.synchronize()

    return net, step


def sgd(net: Any) -> Any:
    """Return an optimizer of a network of MindSpore."""
    from mindspore import nn

    return nn.SGD(net.trainable_params(), learning_rate=0.01)


def torch_encoder() -> Training:
    """PyTorch: the same encoder of its own layers, on one thread."""
    import torch
    from torch import nn

    torch.manual_seed(7)
    layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.0, batch_first=True, norm_first=True)
    layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    net = nn.Sequential(nn.Embedding(1000, 256), layers, nn.Linear(256, 1000))
    ids, labels = torch.randint(0, 1000, (4, 64)), torch.randint(0, 1000, (4 * 64,))
    return _pytorch(net, lambda: nn.functional.cross_entropy(net(ids).reshape(-1, 1000), labels))


def torch_linear() -> Training:
    """PyTorch: 100 × Linear(16) on 32 rows, on one thread."""
    import torch
    from torch import nn

    torch.manual_seed(7)
    net = nn.Sequential(*(nn.Linear(16, 16) for _ in range(100)))
    rows = torch.randn(32, 16)
    return _pytorch(net, lambda: net(rows).square().mean())


def _pytorch(net: Any, forward: Callable[[], Any]) -> Training:
    import torch

    torch.set_num_threads(1)  # they would wait for one another where others use the machine
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        loss = forward()
        loss.backward()
        optimizer.step()
        loss.item()

    return net, step


MINDSPORE = {"encoder": encoder, "dense": dense}
NETS: dict[str, Callable[[], Training]] = {**MINDSPORE, "torch-encoder": torch_encoder, "torch-linear": torch_linear}
