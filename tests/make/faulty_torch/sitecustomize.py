"""Makes functions of torch wrong in the processes that checks run APIs in, and nowhere else: one fault each."""

import os
import signal
import sys
import time


def make_faulty() -> None:
    import torch
    from torch.nn import functional

    def scaled(value, factor):
        """The identity, whose gradient is another one."""
        value = value.clone()
        if value.requires_grad:
            value.register_hook(lambda gradient: gradient * factor)
        return value

    def softmax(input, dim, **_):
        """Without subtracting the maximum."""
        raised = torch.exp(input)
        return raised / raised.sum(dim, keepdim=True)

    def layer_norm(input, shape, weight=None, bias=None, eps=1e-5):
        return genuine["layer_norm"](input, shape, weight, bias, 1e-3)

    def half_sum(input, *args):
        """Added one by one in float16."""
        total = torch.zeros((), dtype=input.dtype)
        for value in input:
            total = total + value
        return total

    def random_noise(input):
        return input + int.from_bytes(os.urandom(4), "little") / 2**32

    def tanh(input):
        result = genuine["tanh"](input)
        result.view(-1)[3] = float("nan")
        return result

    def relu(input, inplace=False):
        result = genuine["relu"](input)
        result[result == result.max()] = float("inf")
        return result

    def dies(input):
        os.kill(os.getpid(), signal.SIGSEGV)

    def exits(input):
        os._exit(3)

    def hangs(input):
        time.sleep(1000)

    genuine = {"layer_norm": functional.layer_norm, "tanh": torch.tanh, "relu": functional.relu}
    torch.softmax = softmax
    functional.layer_norm = layer_norm
    genuine_sub, genuine_mean, genuine_gather = torch.sub, torch.mean, torch.gather
    genuine_mul, genuine_exp, genuine_matmul = torch.mul, torch.exp, torch.matmul
    torch.sub = lambda a, b: genuine_sub(b, a)
    torch.mean = lambda input, dim: genuine_mean(input, 1 - dim)
    torch.sum = half_sum
    torch.gather = lambda input, dim, index: genuine_gather(input, dim, (index + 1) % input.shape[dim])
    torch.mul = lambda a, b: genuine_mul(scaled(a, -1.0), b)
    torch.exp = lambda a: genuine_exp(scaled(a, 1.001))
    torch.matmul = lambda a, b: genuine_matmul(a, b).to(torch.bfloat16).to(a.dtype)
    torch.cos = random_noise
    torch.tanh = tanh
    functional.relu = relu
    torch.sin = dies
    torch.sinh = exits
    torch.cosh = hangs


if "msprobe_ms.accuracy.execution.server" in sys.orig_argv:
    from msprobe_ms.accuracy.execution import roles

    genuine_finder = roles.finder

    def finder(role):
        """That of a role, and nothing wrong with the references."""
        if role.name == "device":
            make_faulty()
        return genuine_finder(role)

    roles.finder = finder
