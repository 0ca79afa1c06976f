"""MobileNetV1, norms and activations side by side: mindcv beside timm, whose norms hold their activations."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import group_of

#: Blocks of timm's stages; mindcv numbers them behind three layers of the stem.
STAGES, FIRST = (1, 2, 2, 6, 2), 3
LAYERS = {"0": "conv_dw", "1": "bn1", "3": "conv_pw", "4": "bn2"}


class MobileNetV1(Classifier):
    size = 64
    names = ((r"^features\.0\b", "conv_stem"), (r"^features\.1\b", "bn1"))

    def golden(self) -> Any:
        from timm.models.efficientnet import _gen_mobilenet_v1

        return _gen_mobilenet_v1("mobilenetv1_100", 0.25, num_classes=self.classes, act_layer="relu")

    def target(self) -> Any:
        from mindcv.models.mobilenetv1 import MobileNetV1

        return MobileNetV1(alpha=0.25, num_classes=self.classes)

    def parameter(self, path: str) -> str:
        if found := re.fullmatch(r"features\.(\d+)\.(\d)\.(.+)", path):
            stage, block = group_of(int(found[1]) - FIRST, STAGES)
            path = f"blocks.{stage}.{block}.{LAYERS[found[2]]}.{found[3]}"
        return super().parameter(path)


PAIR = MobileNetV1()
