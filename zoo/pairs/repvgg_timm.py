"""RepVGG before its branches are merged: mindcv beside timm's blocks of one's own."""

import re
from typing import Any

from zoo.pair import Classifier

DEPTHS, WIDTHS = (1, 2, 2, 1), (0.25, 0.25, 0.25, 0.25)


class RepVGG(Classifier):
    size = 64
    names = (
        (r"^stage0\b", "stem"),
        (r"\brbr_identity\b", "identity"),
        (r"\brbr_dense\.0\b", "conv_kxk.conv"),
        (r"\brbr_dense\.1\b", "conv_kxk.bn"),
        (r"\brbr_1x1\.0\b", "conv_1x1.conv"),
        (r"\brbr_1x1\.1\b", "conv_1x1.bn"),
        (r"^linear\b", "head.fc"),
    )

    def golden(self) -> Any:
        from timm.models.byobnet import ByoBlockCfg, ByobNet, ByoModelCfg

        blocks = [
            ByoBlockCfg(type="rep", d=depth, c=int(base * width))
            for depth, base, width in zip(DEPTHS, (64, 128, 256, 512), WIDTHS, strict=True)
        ]
        return ByobNet(ByoModelCfg(blocks=tuple(blocks), stem_type="rep", stem_chs=16), num_classes=self.classes)

    def target(self) -> Any:
        from mindcv.models.repvgg import RepVGG

        return RepVGG(list(DEPTHS), num_classes=self.classes, width_multiplier=list(WIDTHS))

    def parameter(self, path: str) -> str:
        path = re.sub(r"^stage([1-4])\b", lambda found: f"stages.{int(found[1]) - 1}", path)
        return super().parameter(path)


PAIR = RepVGG()
