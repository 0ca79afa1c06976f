"""MobileNetV2, inverted residuals with ReLU6: mindcv's flat list of layers beside torchvision's groups."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import without_dropout

WIDTH = 0.35
#: Layers of mindcv's blocks and torchvision's, without and with an expansion.
PLAIN = {0: "0.0", 1: "0.1", 3: "1", 4: "2"}
EXPANDED = {0: "0.0", 1: "0.1", 3: "1.0", 4: "1.1", 6: "2", 7: "3"}
#: The places of mindcv's first and last block.
FIRST, LAST = 3, 19


class MobileNetV2(Classifier):
    size = 64
    names = (
        (r"^features\.([01])\.(\w+)$", r"features.0.\1.\2"),
        (r"^features\.20\b", f"features.{LAST - 1}.0"),
        (r"^features\.21\b", f"features.{LAST - 1}.1"),
    )

    def golden(self) -> Any:
        from torchvision.models import mobilenet_v2

        return mobilenet_v2(num_classes=self.classes, width_mult=WIDTH, dropout=0.0)

    def target(self) -> Any:
        from mindcv.models.mobilenetv2 import MobileNetV2

        net = MobileNetV2(alpha=WIDTH, num_classes=self.classes)
        without_dropout(net)
        return net

    def parameter(self, path: str) -> str:
        if found := re.fullmatch(r"features\.(\d+)\.layers\.(\d+)\.(.+)", path):
            place = int(found[1]) - FIRST + 1
            layer = (PLAIN if place == 1 else EXPANDED)[int(found[2])]
            path = f"features.{place}.conv.{layer}.{found[3]}"
        return super().parameter(path)


PAIR = MobileNetV2()
