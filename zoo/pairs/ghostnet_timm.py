"""GhostNet, maps made of others by cheap convolutions, narrowed: mindcv beside timm."""

from typing import Any

from zoo.pair import Classifier


class GhostNet(Classifier):
    size = 64
    names = ((r"\bfeatures\.0\b", "0.conv"), (r"\bfeatures\.1\b", "0.bn1"))

    def golden(self) -> Any:
        from timm.models import GhostNet

        return GhostNet(self._stages(), num_classes=self.classes, width=0.25, drop_rate=0.0)

    def _stages(self) -> list[list[list[float]]]:
        """Kernel, middle and last width, squeeze and stride of each block; mindcv's are written into its class."""
        return [
            [[3, 16, 16, 0, 1]],
            [[3, 48, 24, 0, 2]],
            [[3, 72, 24, 0, 1]],
            [[5, 72, 40, 0.25, 2]],
            [[5, 120, 40, 0.25, 1]],
            [[3, 240, 80, 0, 2]],
            [
                [3, 200, 80, 0, 1],
                [3, 184, 80, 0, 1],
                [3, 184, 80, 0, 1],
                [3, 480, 112, 0.25, 1],
                [3, 672, 112, 0.25, 1],
            ],
            [[5, 672, 160, 0.25, 2]],
            [[5, 960, 160, 0, 1], [5, 960, 160, 0.25, 1], [5, 960, 160, 0, 1], [5, 960, 160, 0.25, 1]],
        ]

    def target(self) -> Any:
        from mindcv.models.ghostnet import GhostNet

        return GhostNet(num_classes=self.classes, width=0.25, drop_rate=0.0)


PAIR = GhostNet()
