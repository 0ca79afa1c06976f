"""Res2Net with scales inside its blocks, narrowed: mindcv beside timm's ResNet of the same blocks."""

from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import name_by_place

WIDTHS = (8, 16, 16, 24)


class Res2Net(Classifier):
    size = 48
    names = (
        # Where nothing is pooled timm keeps an Identity.
        (r"^(layer1\.0)\.down_sample\.1\b", r"\1.downsample.2"),
        (r"^(layer1\.0)\.down_sample\.0\b", r"\1.downsample.1"),
        (r"\bdown_sample\b", "downsample"),
        (r"^classifier\b", "fc"),
    )

    def golden(self) -> Any:
        from timm.models.res2net import Bottle2neck
        from timm.models.resnet import ResNet

        return ResNet(
            Bottle2neck,
            layers=(1, 2, 1, 1),
            channels=WIDTHS,
            num_classes=self.classes,
            base_width=26,
            stem_type="deep",
            stem_width=32,
            avg_down=True,
            block_args={"scale": 4},
        )

    def target(self) -> Any:
        from mindcv.models.res2net import Bottle2neck, Res2Net
        from mindspore import nn

        class Narrow(Res2Net):
            """As wide as asked for."""

            def _make_layer(self, block: Any, channels: int, block_nums: int, stride: int = 1) -> Any:
                return super()._make_layer(block, WIDTHS[(64, 128, 256, 512).index(channels)], block_nums, stride)

        net = Narrow(Bottle2neck, [1, 2, 1, 1], version="res2net_v1b", num_classes=self.classes)
        net.classifier = nn.Dense(WIDTHS[-1] * Bottle2neck.expansion, self.classes)
        name_by_place(net)
        return net


PAIR = Res2Net()
