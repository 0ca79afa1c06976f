"""A function with a gradient of its own: a Cell with bprop beside an autograd Function, both written here."""

from typing import Any

import numpy as np

from zoo.pair import Batch, CrossEntropy, Pair

WIDTH = 16


class OwnFunction(Pair):
    optimizer = "adam"
    learning_rate = 1e-3

    def golden(self) -> Any:
        import torch
        from torch import nn

        class Softsign(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                below = x.abs() + 1
                ctx.save_for_backward(below)
                return x / below

            @staticmethod
            def backward(ctx: Any, gradient: Any) -> Any:
                (below,) = ctx.saved_tensors
                return gradient / (below * below)

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.norm, self.last = nn.Linear(12, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 12)

            def forward(self, x: Any) -> Any:
                return self.last(Softsign.apply(self.norm(self.first(x))))

        return Net()

    def target(self) -> Any:
        from mindspore import mint, nn

        class Softsign(nn.Cell):
            def construct(self, x: Any) -> Any:
                return x / (mint.abs(x) + 1)

            def bprop(self, x: Any, out: Any, dout: Any) -> Any:
                below = mint.abs(x) + 1
                return (dout / (below * below),)

        class Net(nn.Cell):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.norm, self.last = (
                    nn.Dense(12, WIDTH),
                    nn.LayerNorm((WIDTH,), epsilon=1e-5),
                    nn.Dense(WIDTH, 12),
                )
                self.activate = Softsign()

            def construct(self, x: Any) -> Any:
                return self.last(self.activate(self.norm(self.first(x))))

        return Net()

    def batch(self, generator: np.random.Generator) -> Batch:
        return {name: generator.standard_normal((8, 12)).astype(np.float32) for name in ("x", "wanted")}

    def golden_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return ((net(batch["x"]) - batch["wanted"]) ** 2).mean()

    def target_loss(self, net: Any, batch: dict[str, Any], cross_entropy: CrossEntropy) -> Any:
        return ((net(batch["x"]) - batch["wanted"]) ** 2).sum() / 96.0


PAIR = OwnFunction()
