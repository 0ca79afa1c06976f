"""LeNet, a net of residual blocks, and one of the shape of a U."""

from __future__ import annotations

from mindspore import Tensor, nn, ops


class Pool(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.average = False

    def construct(self, x: Tensor) -> Tensor:
        return ops.avg_pool2d(x, 2, 2) if self.average else ops.max_pool2d(x, 2, 2)


class LeNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.deviation, self.channels_last, self.activated = 0.5, False, True
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(6, 16, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.relu2 = nn.ReLU()
        self.pool = Pool()
        self.fc1 = nn.Dense(16 * 6 * 6, 64)
        self.act = nn.GELU(approximate=False)
        self.fc2 = nn.Dense(64, 64)
        self.relu3 = nn.ReLU()
        self.fc3 = nn.Dense(64, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.relu1(self.conv1(x / self.deviation))
        x = self.conv2(x)
        x = self.pool(self.relu2(x) if self.activated else x)
        if self.channels_last:
            x = x.transpose(0, 2, 3, 1)
        x = self.act(self.fc1(x.reshape(x.shape[0], -1)))
        return self.fc3(self.relu3(self.fc2(x)))


class ResidualBlock(nn.Cell):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.scale, self.residual, self.detached, self.projects = 0.5, True, False, stride > 1
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(out)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(out, out, 3, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu2 = nn.ReLU()
        if self.projects:
            self.shortcut = nn.Conv2d(channels, out, 1, stride=stride, pad_mode="valid")

    def construct(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x))))) * self.scale
        if self.projects:
            x = self.shortcut(x)
        if self.detached:
            x = ops.stop_gradient(x)
        return self.relu2(x + y if self.residual else y)


class ResNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.maximum = False
        self.stem = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.bn = nn.BatchNorm2d(8)
        self.blocks = nn.CellList([ResidualBlock(8, 8, 1), ResidualBlock(8, 16, 2), ResidualBlock(16, 16, 1)])
        self.head = nn.Dense(16, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.bn(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(ops.amax(x, (2, 3)) if self.maximum else x.mean((2, 3)))


class DoubleConv(nn.Cell):
    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, pad_mode="pad", padding=1, has_bias=True)
        self.norm1 = nn.GroupNorm(4, out, eps=1e-5)
        self.act1 = nn.LeakyReLU(0.01)
        self.conv2 = nn.Conv2d(out, out, 3, pad_mode="pad", padding=1, has_bias=True)
        self.norm2 = nn.GroupNorm(4, out, eps=1e-5)
        self.act2 = nn.LeakyReLU(0.01)

    def construct(self, x: Tensor) -> Tensor:
        x = self.act1(self.norm1(self.conv1(x)))
        return self.act2(self.norm2(self.conv2(x)))


class UNet(nn.Cell):
    """A class for each pixel of a 16 × 16 image."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.skip, self.swapped = 1.0, True, False
        self.enc1 = DoubleConv(3, 8)
        self.down = nn.Conv2d(8, 8, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.enc2 = DoubleConv(8, 16)
        self.up = nn.Conv2dTranspose(16, 8, 2, stride=2, pad_mode="valid", has_bias=True)
        self.dec = DoubleConv(16, 8)
        self.out = nn.Conv2d(8, 4, 1, pad_mode="valid", has_bias=True)

    def construct(self, x: Tensor) -> Tensor:
        skipped = self.enc1(x)
        y = self.up(self.enc2(self.down(skipped))) * self.scale
        if not self.skip:
            skipped = ops.zeros_like(skipped)
        joined = ops.cat((y, skipped) if self.swapped else (skipped, y), 1)
        return self.out(self.dec(joined)).transpose(0, 2, 3, 1).reshape(-1, 4)
