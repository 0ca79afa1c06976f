"""A training in PyTorch."""

from __future__ import annotations

import torch

from msprobe_ms.pytorch import PrecisionDebugger
from torture.failing_disk.trainings import Result, Save, Training


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.act = torch.nn.ReLU()
        for parameter in self.parameters():
            torch.nn.init.ones_(parameter)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.fc(x) * 2)


def dynamic() -> Training:
    net, x = Net(), torch.tensor([[0.5, -1], [2, torch.inf]])

    def train(save: Save) -> Result:
        net.zero_grad()
        save(x, "x")
        y = net(x)
        save({"y": y, "more": [1.5, "text"]}, "y")
        loss = y.sum()
        loss.backward()
        values = [loss.detach(), *(parameter.grad for parameter in net.parameters())]
        return [value.numpy().tobytes() for value in values if value is not None]

    spaces = (torch, torch.nn.functional, torch.Tensor, torch.nn.Module)
    return Training(net, lambda: list(net.modules()), train, PrecisionDebugger, spaces)
