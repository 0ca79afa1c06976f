"""Layers that compute in float16 and give float32, under the names of the layers whose place they take."""

from __future__ import annotations

import mindspore as ms
from mindspore import Tensor, nn, ops


class Dense(nn.Dense):
    def construct(self, x: Tensor) -> Tensor:
        y = ops.matmul(x.astype(ms.float16), self.weight.astype(ms.float16).swapaxes(0, 1))
        return (y + self.bias.astype(ms.float16) if self.has_bias else y).astype(ms.float32)


class Conv2d(nn.Conv2d):
    def construct(self, x: Tensor) -> Tensor:
        y = self.conv2d(x.astype(ms.float16), self.weight.astype(ms.float16))
        return (y + self.bias.astype(ms.float16).reshape(1, -1, 1, 1)).astype(ms.float32)
