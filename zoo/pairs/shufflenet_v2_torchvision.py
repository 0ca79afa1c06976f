"""ShuffleNet v2: mindcv, which shuffles channels where a block begins, beside torchvision, where it ends."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, group_of

REPEATS = (4, 8, 4)


class ShuffleNet(Classifier):
    size = 64
    names = (
        (r"^first_conv\b", "conv1"),
        (r"\bbranch_proj\b", "branch1"),
        (r"\bbranch_main\b", "branch2"),
        (r"^conv_last\b", "conv5"),
        (r"^classifier\b", "fc"),
    )

    def golden(self) -> Any:
        from torchvision.models import shufflenet_v2_x0_5

        return shufflenet_v2_x0_5(num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models.shufflenetv2 import ShuffleNetV2, ShuffleV2Block
        from mindspore import nn, ops

        def shuffled(x: Any) -> Any:
            rows, channels, height, width = x.shape
            x = ops.reshape(x, (rows, 2, channels // 2, height, width))
            return ops.reshape(ops.transpose(x, (0, 2, 1, 3, 4)), (rows, channels, height, width))

        class Block(ShuffleV2Block):
            """torchvision mixes both halves; mindcv's even and odd channels are another order of theirs."""

            def construct(self, old_x: Any) -> Any:
                x = shuffled(old_x) if self.follows else old_x
                if self.stride == 2:
                    return ops.concat((self.branch_proj(x), self.branch_main(x)), axis=1)
                kept, x = ops.split(x, x.shape[1] // 2, axis=1)
                return ops.concat((kept, self.branch_main(x)), axis=1)

        class Net(ShuffleNetV2):
            def forward_head(self, x: Any) -> Any:
                return super().forward_head(shuffled(x))

        net = Net(num_classes=self.classes, model_size="0.5x")
        net.max_pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
        net.classifier = nn.Dense(1024, self.classes)
        for index, (_, block) in enumerate(cells(net, "ShuffleV2Block")):
            block.__class__ = Block
            block.follows = index > 0
        return net

    def parameter(self, path: str) -> str:
        if found := re.match(r"features\.(\d+)\b", path):
            stage, place = group_of(int(found[1]), REPEATS)
            path = f"stage{stage + 2}.{place}{path[found.end() :]}"
        return super().parameter(path)


PAIR = ShuffleNet()
