"""MobileNetV3 small at half its width: mindcv beside torchvision."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import cells, group_of, pad_both_sides, without_dropout

#: Of each block: whether it widens its input first, and whether it squeezes and excites.
BLOCKS = ((False, True), (True, False), (True, False), *[(True, True)] * 8)


class MobileNetV3(Classifier):
    size = 64

    def golden(self) -> Any:
        from torch import nn
        from torchvision.models.mobilenetv3 import MobileNetV3, _mobilenet_v3_conf

        blocks, last = _mobilenet_v3_conf("mobilenet_v3_small", width_mult=0.5)
        return MobileNetV3(blocks, last, num_classes=self.classes, norm_layer=nn.BatchNorm2d, dropout=0.0)

    def target(self) -> Any:
        from mindcv.models.mobilenetv3 import MobileNetV3

        net = MobileNetV3("small", alpha=0.5, num_classes=self.classes)
        without_dropout(net)
        # mindcv pads the depthwise convolutions with "same", the stem by hand.
        for _, convolution in cells(net, "Conv2d"):
            if convolution.pad_mode == "same" and convolution.kernel_size != (1, 1):
                pad_both_sides(convolution)
        return net

    def parameter(self, path: str) -> str:
        path = super().parameter(path)
        if path.startswith("classifier"):
            return path
        number, rest = re.fullmatch(r"features\.(\d+)\.(.+)", path).groups()  # type: ignore[union-attr]
        index = int(number)
        if index < 3:
            return f"features.0.{index}.{rest}"
        if index >= 3 + len(BLOCKS):
            return f"features.{len(BLOCKS) + 1}.{index - 3 - len(BLOCKS)}.{rest}"
        widens, squeezes = BLOCKS[index - 3]
        groups = [3, 3, 1, 2] if widens else [3, 1, 2]
        if not squeezes:
            groups.remove(1)
        place, name = re.fullmatch(r"layers\.(\d+)\.(.+)", rest).groups()  # type: ignore[union-attr]
        block, inside = group_of(int(place), groups)
        name = name.replace("conv_reduce", "fc1").replace("conv_expand", "fc2")
        name = name if name.startswith("fc") else f"{inside}.{name}"
        return f"features.{index - 2}.block.{block}.{name}"


PAIR = MobileNetV3()
