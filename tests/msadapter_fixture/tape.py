"""Gives mindtorch a real ``loss.backward()``, as newer MSAdapter has (MindSpore 2.7.1 and later)."""

import mindspore as ms
import torch
from mindspore._c_expression import run_backward
from mindspore.common.api import _pynative_executor

_pynative_executor.set_grad_flag(True)
_pynative_executor.set_enable_grad(True)

Tensor, Parameter = ms.Tensor, torch.nn.Parameter
if "_requires_grad" in vars(Tensor):
    del Tensor._requires_grad  # mindtorch 0.5.1 hides MindSpore's own attribute
if "grad" in vars(Parameter):
    del Parameter.grad
Tensor.grad = property(lambda self: self._grad, lambda self, value: setattr(self, "_grad", value))
Tensor.requires_grad = property(
    lambda self: self._requires_grad, lambda self, value: setattr(self, "_requires_grad", value)
)


def _backward(self, gradient=None, retain_graph=False, create_graph=False, inputs=None):
    gradient = ms.ops.ones_like(self) if gradient is None else gradient
    options = {"allow_unreachable": True, "accumulate_grad": True}
    run_backward((self,), (gradient,), bool(retain_graph), bool(create_graph), (), **options)


Tensor.backward = _backward
