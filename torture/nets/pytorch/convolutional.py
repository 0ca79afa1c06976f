"""LeNet, a net of residual blocks, and one of the shape of a U."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torture.nets.pytorch.module import Module


class Pool(Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(x, 2, 2)


class LeNet(Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(6, 16, 3, stride=2, padding=1)
        self.relu2 = nn.ReLU()
        self.pool = Pool()
        self.fc1 = nn.Linear(16 * 6 * 6, 64)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(64, 64)
        self.relu3 = nn.ReLU()
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu1(self.conv1(x / 0.5))
        x = self.pool(self.relu2(self.conv2(x)))
        x = self.act(self.fc1(x.reshape(x.shape[0], -1)))
        return self.fc3(self.relu3(self.fc2(x)))


class ResidualBlock(Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.projects = stride > 1
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu2 = nn.ReLU()
        if self.projects:
            self.shortcut = nn.Conv2d(channels, out, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x))))) * 0.5
        if self.projects:
            x = self.shortcut(x)
        return self.relu2(x + y)


class ResNet(Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.blocks = nn.ModuleList([ResidualBlock(8, 8, 1), ResidualBlock(8, 16, 2), ResidualBlock(16, 16, 1)])
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.bn(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


class DoubleConv(Module):
    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, padding=1)
        self.norm1 = nn.GroupNorm(4, out)
        self.act1 = nn.LeakyReLU(0.01)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.norm2 = nn.GroupNorm(4, out)
        self.act2 = nn.LeakyReLU(0.01)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act1(self.norm1(self.conv1(x)))
        return self.act2(self.norm2(self.conv2(x)))


class UNet(Module):
    def __init__(self) -> None:
        super().__init__()
        self.enc1 = DoubleConv(3, 8)
        self.down = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.enc2 = DoubleConv(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.dec = DoubleConv(16, 8)
        self.out = nn.Conv2d(8, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        skipped = self.enc1(x)
        y = self.up(self.enc2(self.down(skipped))) * 1.0
        return self.out(self.dec(torch.cat((skipped, y), 1))).permute(0, 2, 3, 1).reshape(-1, 4)
