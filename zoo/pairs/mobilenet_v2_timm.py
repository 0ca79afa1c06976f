"""MobileNetV2 at a third of its width: mindcv beside timm, whose normalizations activate."""

import re
from typing import Any

from zoo.pair import Classifier
from zoo.pairs._mindcv import group_of, without_dropout

STAGES = (1, 2, 3, 4, 3, 3, 1)
#: timm's names of the layers of a block, in mindcv's order; that of a Cell without parameters is left empty.
WIDENING = ("conv_pw", "bn1", "", "conv_dw", "bn2", "", "conv_pwl", "bn3")
PLAIN = ("conv_dw", "bn1", "", "conv_pw", "bn2")


class MobileNetV2(Classifier):
    size = 64
    names = ((r"^classifier\.1\b", "classifier"),)

    def golden(self) -> Any:
        import timm

        return timm.create_model("mobilenetv2_035", num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models.mobilenetv2 import MobileNetV2

        net = MobileNetV2(alpha=0.35, num_classes=self.classes)
        without_dropout(net)
        return net

    def parameter(self, path: str) -> str:
        path = super().parameter(path)
        if not path.startswith("features"):
            return path
        number, rest = re.fullmatch(r"features\.(\d+)\.(.+)", path).groups()  # type: ignore[union-attr]
        stage, place = group_of(int(number), [3, *STAGES, 3])
        if stage == 0:
            return f"{('conv_stem', 'bn1')[place]}.{rest}"
        if stage == len(STAGES) + 1:
            return f"{('conv_head', 'bn2')[place]}.{rest}"
        layer, name = re.fullmatch(r"layers\.(\d)\.(.+)", rest).groups()  # type: ignore[union-attr]
        return f"blocks.{stage - 1}.{place}.{(PLAIN if stage == 1 else WIDENING)[int(layer)]}.{name}"


PAIR = MobileNetV2()
