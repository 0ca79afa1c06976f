"""ResNeSt with split attention, narrowed: mindcv beside timm's ResNet of the same blocks."""

from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, name_by_place

WIDTHS = (8, 16, 16, 24)


class ResNeSt(Classifier):
    size = 64

    def golden(self) -> Any:
        from timm.models.resnest import ResNestBottleneck
        from timm.models.resnet import ResNet

        return ResNet(
            ResNestBottleneck,
            layers=(1, 2, 1, 1),
            channels=WIDTHS,
            num_classes=self.classes,
            stem_type="deep",
            stem_width=8,
            avg_down=True,
            base_width=64,
            cardinality=1,
            block_args={"radix": 2, "avd": True, "avd_first": False},
        )

    def target(self) -> Any:
        from mindcv.models.resnest import Bottleneck, ResNeSt
        from mindspore import nn

        class Narrow(ResNeSt):
            """As wide as asked for."""

            def _make_layer(self, block: Any, planes: int, blocks: int, **named: Any) -> Any:
                return super()._make_layer(block, WIDTHS[(64, 128, 256, 512).index(planes)], blocks, **named)

        net = Narrow(
            Bottleneck,
            [1, 2, 1, 1],
            radix=2,
            num_classes=self.classes,
            deep_stem=True,
            stem_width=8,
            avg_down=True,
            avd=True,
        )
        net.fc = nn.Dense(WIDTHS[-1] * Bottleneck.expansion, self.classes)
        # mindcv lets "same" choose how its pools are padded; and leaves the padding out of the average.
        net.maxpool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        for _, block in cells(net, "Bottleneck"):
            if block.avd:
                block.avd_layer = nn.AvgPool2d(3, block.avd_layer.stride, pad_mode="pad", padding=1)
        name_by_place(net)
        return net


PAIR = ResNeSt()
